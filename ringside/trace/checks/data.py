"""The GPU waits for images: the loader's or the `data` mark's time in which nothing runs.

Seen when the GPU is idle for want of images in 10 % of the step or more of the rank that sets the
pace; below 20 % it gives way to other findings. The other ranks wait for that one in their
collectives, so that a trace of one of them looks like a slow link: 82 % "exposed communication" in
a run whose loader slept 40 ms a step. Where the experiment (DATA-002) tells of the same wait, this
is its evidence; of this and the run's own clocks (DATA-010) the larger share is told.
What to do: more loader workers as far as there are cores, decoding on the GPU where it does not
decode yet, prepared images.
Sources: dinov2#161 and #134, pytorch#22451; TraceML's bands; the sleeping loader was made for
Ringside on two H200s.
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of, per_step_us
from ringside.trace.facts import Facts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import ACT, URGENT
from ringside.words import say

CODE = "DATA-001"
CAUSE: Cause = "data"
ORDER = 50


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("data_idle")
    if share < ACT.value:
        return None
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say(
            "trace.data", rank=pace.rank, share=share,
            ms=per_step_us(pace, pace.host.data_wait_us) / 1000,
        ),
        confidence=confidence_of(facts, share),
        refutation=say("trace.data_refutation"),
        is_minor=share < URGENT.value,
    )  # fmt: skip
