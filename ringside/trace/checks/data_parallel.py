"""nn.DataParallel: one process copies the model to every GPU in each step.

Seen when a trace holds its forward pass. What does not compute of the step is its upper bound.
What to do: DDP, one process for each GPU.
Sources: pytorch's forum 66495, pytorch#3917 (80 to 300 ms) and #5421, luyug/GC-DPR#2.
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Cause, Finding
from ringside.words import say

CODE = "PARALLEL-001"
CAUSE: Cause = "data_parallel"
ORDER = 10


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    if not pace.num_data_parallel:
        return None
    share = 1 - pace.breakdown.ratio("compute")
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say("trace.data_parallel", num=max(pace.num_devices, 1), share=share),
        confidence=confidence_of(facts, share),
        refutation=say("trace.data_parallel_refutation"),
    )
