"""One module per question. A new one is found by itself.

Each module has

    CODE = "disk"         a stable name, frozen in docs/preflight.md
    ORDER = 40            where it stands among items of its level
    def check(case: Case) -> Remark | None      None: the question does not arise here

Sentences stand in `[preflight]` of the words. A check takes milliseconds, reads and never raises.
An error is said only of what cannot run; where nobody measured, the answer is `unknown`.
"""
