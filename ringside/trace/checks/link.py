"""The transfer itself, without the waiting for late ranks, is not hidden by compute.

Seen when 10 % of the step or more goes by in transfers while nothing computes, on the rank that
sets the pace; below 20 % it gives way to other findings. A transfer is the shortest duration of a
collective over the ranks, so the traces of all of them are needed: from one alone, confidence is
low.
What to do: a way that is shut (variables, P2P, shared memory) first; then fewer bytes (a 16-bit
hook) or fewer exchanges (a larger batch per device, then accumulation).
Sources: exposed communication is Lumos' (arXiv:2504.09307); TraceML's bands of 10 and 20 %.
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Bucket, Facts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import ACT, URGENT
from ringside.words import say

CODE = "LINK-001"
CAUSE: Cause = "link"
ORDER = 60


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("exposed_transfer")
    if share < ACT.value:
        return None
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=" ".join(
            [say("trace.link", rank=pace.rank, share=share), *_bandwidth(pace.buckets)]
        ),
        confidence=confidence_of(facts, share, needs_ranks=True),
        refutation=say("trace.link_refutation"),
        is_minor=share < URGENT.value,
    )


def _bandwidth(buckets: tuple[Bucket, ...]) -> list[str]:
    """A sentence about the largest message with a known bandwidth, if there is one."""
    known = [b for b in buckets if b.busbw_bytes_per_s and b.num_bytes]
    if not known:
        return []
    large = max(known, key=lambda b: b.num_bytes or 0)
    return [
        say(
            "trace.bandwidth", operation=(large.operation or "").replace("_", "-"),
            mb=(large.num_bytes or 0) / 1e6, ms=large.transfer_us / 1000,
            gb_per_s=(large.busbw_bytes_per_s or 0.0) / 1e9,
        )
    ]  # fmt: skip
