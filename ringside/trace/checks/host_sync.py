"""The host waits for the GPU in every step: `.item()`, `.cpu()`, a printed loss.

Seen when the host waits for the GPU once a step or more, for 10 % of it or more, and the GPU runs
dry for as much. Where it never runs dry, waiting is harmless: the GPU works meanwhile, and what is
lost is the idle time after it. So the share is the smaller of the two.
Only threads that train count, and values that were waited for. Waits of DistributedDataParallel's
own log do not: it measures in its first eleven steps and in every hundredth, and then no more.
What to do: read values every 50 steps, or keep them on the GPU until the end of the epoch.
Sources: torchtune#522 (40 to 50 ms a step), fvdb-reality-capture#144, Lightning#20995,
ms-swift#9966; TraceML's band of 10 %; torch/csrc/distributed/c10d/logger.cpp.
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts, RankFacts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import ACT, EVERY_STEP
from ringside.words import say

CODE = "HOST-001"
CAUSE: Cause = "host_sync"
ORDER = 40


def check(facts: Facts) -> Finding | None:
    """Of the rank that loses most."""
    rank = max(facts.ranks, key=_share)
    share = _share(rank)
    num = max(rank.host.num_synchronisations, rank.host.num_items)
    if num < EVERY_STEP.value or share < ACT.value or rank.is_cpu_estimate:
        return None
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say(
            "trace.host_sync", rank=rank.rank, num=num, items=rank.host.num_items,
            share=_waited(rank), idle=rank.breakdown.ratio("host_wait"),
        ),
        confidence=confidence_of(facts, share),
        refutation=say("trace.host_sync_refutation"),
    )  # fmt: skip


def _share(rank: RankFacts) -> float:
    """The idle time on the host's account, as far as the host waited."""
    return min(_waited(rank), rank.breakdown.ratio("host_wait"))


def _waited(rank: RankFacts) -> float:
    """The longer of the two ways to see it; items contain their synchronisations."""
    waited_us = max(rank.host.synchronised_us, rank.host.item_us)
    return waited_us / rank.breakdown.wall_us if rank.breakdown.wall_us else 0.0
