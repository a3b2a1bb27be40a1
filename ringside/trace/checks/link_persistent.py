"""Compute and exchange take turns: BatchNorm kernels that need the whole GPU shut NCCL's out.

Seen when such kernels run (cuDNN's `batchnorm_*_nhwc_semiPersist`, for channels_last), 10 % of the
step or more goes by in transfers while nothing computes, and less than 5 % of the transfer
runs beside compute. Their blocks wait for each other, so all have to fit at once: on an H200 two on
each of 132 multiprocessors, 512 threads of 64 registers each, which are all registers there are.
One of NCCL's kernels holds a multiprocessor (288 threads of 96 registers, 103 KB of shared memory)
until its exchange is over, and BatchNorm waits; then the next exchange waits for BatchNorm.
What to do: compute in bf16, where torch's own BatchNorm kernels run; `channels_last: false` is
worth an experiment, and how much of the exchange it hides was not measured.
Sources: measured for Ringside on two H200s over sockets, 256 images each: 110.3 ms a step in fp32
against 81.5 on one device, the whole exchange; 60.3 against 54.5 in bf16, with the same bytes.
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import ACT, HIDDEN, URGENT
from ringside.words import say

CODE = "LINK-003"
CAUSE: Cause = "link"
ORDER = 58


def check(facts: Facts) -> Finding | None:
    """Names and overlap agree, but nothing was taken away: never surer than medium."""
    pace = facts.pace
    share = pace.breakdown.ratio("exposed_transfer")
    if not pace.num_persistent or share < ACT.value or pace.hidden_ratio >= HIDDEN.value:
        return None
    sure = confidence_of(facts, share, needs_ranks=True)
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say(
            "trace.link_persistent", rank=pace.rank, share=share, hidden=pace.hidden_ratio,
            num=pace.num_persistent,
        ),
        confidence="medium" if sure == "high" else sure,
        refutation=say("trace.link_persistent_refutation"),
        is_minor=share < URGENT.value,
    )  # fmt: skip
