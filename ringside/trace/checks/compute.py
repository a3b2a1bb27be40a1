"""The GPU computes most of the time: what else there is cannot gain more than the rest.

Seen when compute fills 50 % of the step or more of the rank that sets the pace. It gives way to
every finding that is not below 20 % of the step. In the doctor it is a note: nothing is lost.
What to do: nothing about the devices; 16 bits and a compiled model make the same
computation shorter (2,188 images/s in fp32, 4,675 in bf16, 6,375 compiled, one H200, ResNet-50).
Sources: measured for Ringside; no other part can be larger than half of a step.
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import MOSTLY_COMPUTE
from ringside.words import say

CODE = "COMPUTE-001"
CAUSE: Cause = "compute"
ORDER = 100


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("compute")
    if share < MOSTLY_COMPUTE.value:
        return None
    exposed = pace.breakdown.ratio("exposed_transfer") + pace.breakdown.ratio("exposed_wait")
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say("trace.compute", rank=pace.rank, share=share, exposed=exposed),
        confidence=confidence_of(facts, share),
        refutation=say("trace.compute_refutation"),
        is_minor=True,
    )
