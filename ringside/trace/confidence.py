"""How sure a finding is."""

from __future__ import annotations

from ringside.trace.facts import Facts, RankFacts
from ringside.trace.findings import Confidence
from ringside.trace.thresholds import URGENT


def confidence_of(facts: Facts, share_ratio: float, *, needs_ranks: bool = False) -> Confidence:
    """high: a large share, seen in two steps or more; medium: one of these is missing.

    low: an estimate from a CPU, or a trace without marked steps. So is a finding that tells
    transfer from waiting (`needs_ranks`) without the traces of the other ranks.
    """
    pace = facts.pace
    is_alone = needs_ranks and not facts.is_matched
    if pace.is_cpu_estimate or not pace.num_steps or is_alone:
        return "low"
    doubts = (share_ratio < URGENT.value) + (pace.num_counted_steps < 2)
    return ("high", "medium", "low")[doubts]


def per_step_us(rank: RankFacts, total_us: float) -> float:
    """A sum over the counted steps as microseconds a step."""
    return total_us / rank.num_counted_steps
