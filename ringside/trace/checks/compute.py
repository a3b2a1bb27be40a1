"""The GPU computes most of the time: what else there is cannot gain more than the rest."""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Finding
from ringside.trace.thresholds import MOSTLY_COMPUTE
from ringside.words import say

ORDER = 100


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("compute")
    if share < MOSTLY_COMPUTE.value:
        return None
    exposed = pace.breakdown.ratio("exposed_transfer") + pace.breakdown.ratio("exposed_wait")
    return Finding(
        cause="compute",
        share_ratio=share,
        sentence=say("trace.compute", rank=pace.rank, share=share, exposed=exposed),
        confidence=confidence_of(facts, share),
        refutation=say("trace.compute_refutation"),
        is_minor=True,
    )
