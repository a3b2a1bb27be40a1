"""One trace of several ranks that mostly waits: the traces of the others would say for whom."""

from __future__ import annotations

from ringside.trace.facts import Facts
from ringside.trace.findings import Finding
from ringside.trace.thresholds import URGENT
from ringside.words import say

ORDER = 85  # a guess: after all that the trace itself proves


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("exposed_wait")
    if len(facts.ranks) > 1 or share < URGENT.value:
        return None
    return Finding(
        cause="late_rank",
        share_ratio=share,
        sentence=say("trace.late_unknown", rank=pace.rank, share=share),
        confidence="low",
        refutation=say("trace.late_unknown_refutation"),
    )
