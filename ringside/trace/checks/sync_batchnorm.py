"""Synchronised BatchNorm: every layer exchanges its statistics, forward and backward.

Seen when a trace holds SyncBatchNorm. Its cost is the time of messages below 1 MiB, and below 10 %
of the step it gives way to other findings.
What to do: plain BatchNorm, unless a device has so few images that its statistics are poor.
Sources: pytorch#36452 (the host is blocked), apex#980 (about 30 % for one user).
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import ACT, SMALL_REDUCE_BYTES
from ringside.words import say

CODE = "BATCHNORM-001"
CAUSE: Cause = "sync_batchnorm"
ORDER = 20


def check(facts: Facts) -> Finding | None:
    """The cost is the exposed communication of small messages, and the host's waits for them."""
    pace = facts.pace
    if not pace.host.num_sync_batchnorms:
        return None
    share = _small_share(facts)
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say("trace.sync_batchnorm", num=pace.host.num_sync_batchnorms, share=share),
        confidence=confidence_of(facts, share),
        refutation=say("trace.sync_batchnorm_refutation"),
        is_minor=share < ACT.value,
    )


def _small_share(facts: Facts) -> float:
    """Kernel time of messages below a bucket's size, as a share of the step."""
    pace = facts.pace
    small = [b for b in pace.buckets if (b.num_bytes or 0) < SMALL_REDUCE_BYTES.value]
    spent_us = sum(b.num_per_step * b.duration_us for b in small) * pace.num_counted_steps
    return min(spent_us / pace.breakdown.wall_us, 1.0)
