"""The GPU is done before the host asks for more: many small kernels, or a slow host.

Seen when the GPU is idle for want of launches in 30 % of the step or more. The limit is that high
because the profiler itself slows launches: 24 ms became 35 to 43 on an H200, and up to 28 % of host
wait were seen in steps that compute bounds.
What to do: more images per device, or fewer and larger kernels: a compiled model, with CUDA graphs
(`compile_mode` reduce-overhead) for small batches: 21.9 ms became 11.5 at 64 images on an H200.
Sources: HolisticTraceAnalysis' host_wait; pytorch/examples#1298, Lightning#1005; measured for
Ringside.
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import LAUNCH
from ringside.words import say

CODE = "LAUNCH-001"
CAUSE: Cause = "launch"
ORDER = 90


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("host_wait")
    if share < LAUNCH.value or pace.is_cpu_estimate:
        return None
    waiting = max(rank.breakdown.ratio("exposed_wait") for rank in facts.ranks)
    consequence = [say("trace.waits_in_turns", waiting=waiting)] if len(facts.ranks) > 1 else []
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=" ".join([say("trace.launch", rank=pace.rank, share=share), *consequence]),
        confidence=confidence_of(facts, share),
        refutation=say("trace.launch_refutation"),
    )
