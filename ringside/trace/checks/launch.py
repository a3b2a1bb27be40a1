"""The GPU is done before the host asks for more: many small kernels, or a slow host."""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Finding
from ringside.trace.thresholds import LAUNCH
from ringside.words import say

ORDER = 90


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("host_wait")
    if share < LAUNCH.value or pace.is_cpu_estimate:
        return None
    waiting = max(rank.breakdown.ratio("exposed_wait") for rank in facts.ranks)
    consequence = [say("trace.waits_in_turns", waiting=waiting)] if len(facts.ranks) > 1 else []
    return Finding(
        cause="launch",
        share_ratio=share,
        sentence=" ".join([say("trace.launch", rank=pace.rank, share=share), *consequence]),
        confidence=confidence_of(facts, share),
        refutation=say("trace.launch_refutation"),
    )
