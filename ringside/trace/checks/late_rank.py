"""One rank has more to do than the others, which wait for it in their collectives.

Seen when others wait for a rank 10 % of their step or more, and it computes 10 % of the step longer
than they do, or its host is busy 30 % longer and that is most of what its GPU idles for want of
launches. Waiting alone is no proof: hosts that launch slowly wait for each other in turns. Under
the profiler, steps without a fault differed by up to 32 % of the step on two H200s, where the GPU
idled in 69 %: there the launches are the cause, and that one host is slower is a smaller part.
What to do: the same work for all ranks; other programs, clocks, temperature and power of that GPU.
Sources: traceml#252 (200 ms that no wall time showed), ultralytics#8566, open_clip#703,
pytorch#85334.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from ringside.trace.confidence import confidence_of, per_step_us
from ringside.trace.facts import Facts, RankFacts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import ACT, HOST_LEAD, URGENT
from ringside.words import say

CODE = "LATE-001"
CAUSE: Cause = "late_rank"
ORDER = 70


def check(facts: Facts) -> Finding | None:
    """Waiting alone is no proof: hosts that launch slowly wait for each other in turns.

    The late rank has to compute longer than the others, or its host has to be busy longer. A
    host's time counts without what it spent blocked, since a rank that waits is blocked as long.
    """
    if len(facts.ranks) < 2:
        return None
    pace = facts.pace
    others = [rank for rank in facts.ranks if rank is not pace]
    waiting = max(rank.breakdown.ratio("exposed_wait") for rank in others)
    step_us = per_step_us(pace, pace.breakdown.wall_us)
    compute = _lead_us(pace, others, _compute_us) / step_us
    host = _lead_us(pace, others, _host_us) / step_us
    leads = {
        "trace.late_compute": compute if compute >= ACT.value else 0.0,
        "trace.late_host": host if host >= _least_host_lead(pace) else 0.0,
    }
    what = max(leads, key=lambda name: leads[name])
    share = leads[what]
    if waiting < ACT.value or not share:
        return None
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say(
            "trace.late_rank", rank=pace.rank, what=say(what), share=share, waiting=waiting
        ),
        confidence=confidence_of(facts, share, needs_ranks=True),
        refutation=say("trace.late_rank_refutation", rank=pace.rank),
        is_minor=share < URGENT.value,
    )


def _least_host_lead(pace: RankFacts) -> float:
    """Of the step; more where the GPU idles for launches anyway."""
    return max(HOST_LEAD.value, pace.breakdown.ratio("host_wait") / 2)


def _lead_us(pace: RankFacts, others: list[RankFacts], of: Callable[[RankFacts], float]) -> float:
    return of(pace) - median(of(rank) for rank in others)


def _compute_us(rank: RankFacts) -> float:
    return per_step_us(rank, rank.breakdown.compute_us)


def _host_us(rank: RankFacts) -> float:
    return per_step_us(rank, rank.breakdown.wall_us - rank.host.blocked_us)
