"""One module per cause. A new one is found by itself, and its docstring is its page.

Each module has

    CODE = "LINK-003"         a stable name; no other check has it
    CAUSE: Cause = "link"     one of the closed list
    ORDER = 62                where it stands among findings, lowest first
    def check(case: Case) -> Finding | None      None: this is not the cause, or nobody looked

The checks of `ringside.trace.checks` stand on the same scale of ORDER: handicaps of the program 10
to 40, data 50 to 59, links 60 to 69, late ranks 70 to 79, launches 90 to 94, the machine and its
variables 95 to 99, compute 100, what is only good to know from 110. The order counts among findings
of the same weight; `ringside.doctor.weighing` says what weighs more. Checks that measure one cost
in different ways stand together in `SAME_COST` of `ringside.doctor.merging`, so that one is the
finding and the others are its evidence. Sentences stand in the words
under the code in small letters; see `ringside.doctor.phrasing.finding_of`.

A docstring begins with one sentence, the title of the page, and goes on with what is seen, from
which limits on, what to do, and the sources.
"""
