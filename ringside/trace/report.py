"""What `ringside trace --json` prints: the facts of each rank, and the verdict."""

from __future__ import annotations

import msgspec

from ringside.trace.facts import Breakdown, Bucket, Facts, HostFacts, RankFacts, StepFacts
from ringside.trace.findings import Finding, Verdict


class RankReport(msgspec.Struct, frozen=True, kw_only=True):
    """One rank; sums in microseconds over its counted steps, as in `Totals`."""

    rank: int
    file: str
    world_size: int | None
    num_steps: int
    is_cpu_estimate: bool
    is_wait_estimate: bool
    overlap_ratio: float | None
    comm_us: float
    overlapped_us: float
    exposed_us: float
    transfer_us: float
    wait_us: float
    compute_us: float
    idle_us: float
    span_us: float
    breakdown: Breakdown
    host: HostFacts
    steps: tuple[StepFacts, ...]
    buckets: tuple[Bucket, ...]


class TraceReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything; `bad` holds a sentence for each file that cannot be used."""

    ranks: tuple[RankReport, ...]
    verdict: Finding
    others: tuple[Finding, ...]
    bad: tuple[str, ...] = ()


def report_of(facts: Facts, verdict: Verdict, bad: list[str]) -> TraceReport:
    """Facts and verdict in the form that scripts rely on."""
    return TraceReport(
        ranks=tuple(_rank(rank) for rank in facts.ranks),
        verdict=verdict.first,
        others=verdict.others,
        bad=tuple(bad),
    )


def _rank(rank: RankFacts) -> RankReport:
    sums = rank.totals
    return RankReport(
        rank=rank.rank,
        file=rank.file,
        world_size=rank.world_size,
        num_steps=rank.num_steps,
        is_cpu_estimate=rank.is_cpu_estimate,
        is_wait_estimate=rank.is_wait_estimate,
        overlap_ratio=sums.overlap_ratio,
        comm_us=sums.comm_us,
        overlapped_us=sums.overlapped_us,
        exposed_us=sums.exposed_us,
        transfer_us=rank.transfer_us,
        wait_us=rank.wait_us,
        compute_us=sums.compute_us,
        idle_us=sums.idle_us,
        span_us=sums.span_us,
        breakdown=rank.breakdown,
        host=rank.host,
        steps=rank.steps,
        buckets=rank.buckets,
    )
