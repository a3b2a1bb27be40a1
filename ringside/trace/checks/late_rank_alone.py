"""One trace of several ranks that mostly waits: the traces of the others would say for whom.

Seen when the only trace there is waits for other ranks in 20 % of its step or more, by an estimate
from repetitions and sizes of its messages.
What to do: record the same steps on all ranks.
Sources: the split into transfer and waiting is torch-tb-profiler's; TraceML's band of 20 %.
"""

from __future__ import annotations

from ringside.trace.facts import Facts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import URGENT
from ringside.words import say

CODE = "LATE-002"
CAUSE: Cause = "late_rank"
ORDER = 85  # a guess: after all that the trace itself proves


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("exposed_wait")
    if len(facts.ranks) > 1 or share < URGENT.value:
        return None
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say("trace.late_unknown", rank=pace.rank, share=share),
        confidence="low",
        refutation=say("trace.late_unknown_refutation"),
    )
