"""One module per cause. A new one is found by itself.

Each module has

    CODE = "DATA-001"                          a stable name; no other check has it
    CAUSE: Cause = "data"                      one of the closed list
    ORDER = 50                                 where it stands among findings, lowest first
    def check(facts: Facts) -> Finding | None  None: this is not the cause

Its docstring is its page in docs/checks. Handicaps that cost nothing to remove come first, then
data, links and late ranks, then what needs another batch or model. Sentences stand in the words,
thresholds in `ringside.trace.thresholds`.
"""
