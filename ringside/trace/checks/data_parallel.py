"""nn.DataParallel: one process copies the model to every GPU in each step."""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Finding
from ringside.words import say

ORDER = 10


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    if not pace.num_data_parallel:
        return None
    share = 1 - pace.breakdown.ratio("compute")
    return Finding(
        cause="data_parallel",
        share_ratio=share,
        sentence=say("trace.data_parallel", num=max(pace.num_devices, 1), share=share),
        confidence=confidence_of(facts, share),
        refutation=say("trace.data_parallel_refutation"),
    )
