"""Figures that several checks and the walk-through take from a case; None where not measured."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import TYPE_CHECKING

from ringside.doctor.case import Case
from ringside.doctor.findings import Evidence
from ringside.doctor.phrasing import file_of
from ringside.events import WindowTimed
from ringside.machine.yardsticks import YARDSTICKS, Route, Yardstick, route_of
from ringside.measurements import Series
from ringside.measurements.comparison import Trial, trials
from ringside.nccl_log import worst_ring_edge
from ringside.nccl_log.derive import has_nvlink
from ringside.run import RunRecord
from ringside.spec import RunSpec
from ringside.speedup import SpeedUp, speedup
from ringside.trace.bandwidth import bus_bandwidth
from ringside.trace.findings import Confidence
from ringside.words import say

if TYPE_CHECKING:
    from ringside.measurements.attribution import Attribution, Part

EXPERIMENT = "experiment"


def spec_of(case: Case) -> RunSpec | None:
    """What was asked for."""
    return case.record.spec if case.record is not None else None


def num_devices(case: Case) -> int | None:
    """Devices that train, or the world size of the traces or the log."""
    if (spec := spec_of(case)) is not None:
        return spec.num_devices
    if case.facts is not None and case.facts.pace.world_size:
        return case.facts.pace.world_size
    return case.nccl.num_ranks if case.nccl is not None else None


def steady_windows(record: RunRecord | None) -> list[WindowTimed]:
    """Windows after the first epoch (of a run of one epoch: after the first window), up to where
    the profiler first recorded."""
    if record is None or not record.windows:
        return []
    clean = record.clean_windows
    later = [window for window in clean if window.epoch > record.windows[0].epoch]
    return later or clean[1:]


def window_ms(case: Case, part: str) -> float | None:
    """The median over the steady windows of a part: step, data, forward, backward, optimizer."""
    return _middle(getattr(window, f"{part}_ms") for window in steady_windows(case.record))


def window_lead_ms(case: Case, part: str) -> float | None:
    """By how much the slowest rank exceeds the fastest in a part, median of the windows."""
    pairs = (
        (getattr(window, f"{part}_ms"), getattr(window, f"{part}_ms_min"))
        for window in steady_windows(case.record)
    )
    return _middle(slow - fast for slow, fast in pairs if fast is not None)


def window_share(case: Case, part: str) -> float | None:
    """A part of the step by the run's own clocks, as a share of the step."""
    step, one = window_ms(case, "step"), window_ms(case, part)
    return one / step if step and one is not None else None


def step_ms(case: Case) -> float | None:
    """An optimizer step: by the run's own clocks, else by the trace of the rank in front."""
    if (known := window_ms(case, "step")) is not None:
        return known
    if case.facts is None:
        return None
    pace = case.facts.pace
    return pace.breakdown.wall_us / pace.num_counted_steps / 1000


def transfer_share(case: Case) -> float | None:
    """Exposed transfer of the rank that sets the pace, without waiting."""
    return case.facts.pace.breakdown.ratio("exposed_transfer") if case.facts is not None else None


def exposed_share(case: Case) -> float | None:
    """Exposed transfer and waiting of the rank that sets the pace."""
    if case.facts is None:
        return None
    part = case.facts.pace.breakdown
    return part.ratio("exposed_transfer") + part.ratio("exposed_wait")


def efficiency_of(case: Case) -> SpeedUp:
    """The speed-up of the run against its baseline, or the reason why there is none."""
    return SpeedUp() if case.record is None else speedup(case.record, case.baseline)


def gradient_bytes(case: Case) -> int | None:
    """What one rank hands to the reduction per optimizer step, by the run or by the trace."""
    record = case.record
    if record is not None and record.observed is not None:
        return record.observed.reduced_bytes_per_step
    if case.facts is None:
        return None
    reduces = [b for b in case.facts.pace.buckets if b.operation == "all_reduce"]
    return round(sum((b.num_bytes or 0) * b.num_per_step for b in reduces)) or None


def bucket_bytes(case: Case) -> tuple[int, ...]:
    """The messages of an optimizer step: DDP's last layout, else the one it began with.

    A 16-bit hook sends each of them with half the bytes; they are scaled to what is really reduced.
    """
    record = case.record
    if record is None or record.observed is None:
        return ()
    ddp, sent = record.ddp, gradient_bytes(case)
    told = (ddp.rebuilt_bucket_bytes or ddp.bucket_bytes) if ddp is not None else ()
    sizes = told or record.observed.bucket_bytes
    whole = sum(sizes)
    return tuple(round(size * sent / whole) for size in sizes) if sent and whole else sizes


def wire_bytes(num_bytes: int, num_ranks: int, passes: int = 2) -> float:
    """What a ring sends per rank: 2(n-1)/n of the bytes for an all-reduce (nccl-tests), 3(n-1)/n
    for FSDP's two all-gathers and one reduce-scatter."""
    return passes * (num_ranks - 1) / num_ranks * num_bytes


def series_of(case: Case, dtype: str = "fp32", **environment: str) -> Series | None:
    """The all-reduce of this machine as it is, or with exactly these variables changed."""
    if case.sweep is None:
        return None
    fitting = (
        series
        for series in case.sweep.series
        if (series.operation, series.dtype) == ("all_reduce", dtype)
        and series.environment == environment
    )
    return next(fitting, None)


def trial_of(case: Case, **environment: str) -> Trial | None:
    """What the all-reduce of the sweep did with these variables; None where nobody tried."""
    found = trials(case.sweep) if case.sweep is not None else ()
    return next((trial for trial in found if trial.environment == environment), None)


def alone_us(case: Case) -> float | None:
    """What the run's messages take one after the other with nothing beside them, by the sweep."""
    from ringside.measurements.interpolation import interpolate_us

    series = series_of(case)
    sizes = bucket_bytes(case) or tuple(filter(None, [gradient_bytes(case)]))
    if series is None or not sizes:
        return None
    times = [interpolate_us(series, size) for size in sizes]
    return None if None in times else sum(time for time in times if time is not None)


def large_busbw(series: Series | None) -> float | None:
    """Bytes per second over the busiest link at the largest size that was measured."""
    if series is None or not series.points:
        return None
    point = max(series.points, key=lambda one: one.num_bytes)
    seconds = point.median_us / 1e6
    return bus_bandwidth(series.operation, point.num_bytes, series.num_ranks, seconds)


def best_busbw(case: Case) -> tuple[float, str] | None:
    """The largest bus bandwidth that was seen, by the sweep or else by the traces; its source."""
    if (swept := large_busbw(series_of(case))) is not None:
        return swept, "sweep"
    if case.facts is None:
        return None
    known = [
        (bucket.busbw_bytes_per_s, file_of(rank))
        for rank in case.facts.ranks
        for bucket in rank.buckets
        if bucket.busbw_bytes_per_s and (bucket.num_bytes or 0) >= 2**20
    ]
    return max(known, default=None)


def transport_of(case: Case) -> str | None:
    """The slowest way of a ring by NCCL's log, such as `SHM/direct`; else what the sweep saw."""
    edge = worst_ring_edge(case.nccl) if case.nccl is not None else None
    if edge is not None:
        return edge.name
    series = series_of(case)
    return series.transport if series is not None else None


def is_over_nvlink(case: Case) -> bool | None:
    """Whether P2P goes over NVLink; None where neither log nor machine tell."""
    if case.nccl is not None and (case.nccl.paths or case.nccl.patterns):
        return has_nvlink(case.nccl)
    links = case.machine.links if case.machine is not None else ()
    return any(link.kind == "nvlink" for link in links) if links else None


def attributed(case: Case) -> Attribution | None:
    """What the experiment says of the step; None where there is none or its main arm failed."""
    if case.experiment is None:
        return None
    from ringside.measurements.attribution import attribution

    found = attribution(case.experiment)
    return found if found.step_ms is not None else None


def surely(part: Part) -> Confidence:
    """high: the difference is twice its spread or more; medium: it only exceeds it."""
    return "high" if part.ms >= 2 * part.spread_ms else "medium"


def parts_shown(found: Attribution) -> tuple[Evidence, ...]:
    """All parts of the experiment with their spread; what is unexplained too."""
    step = f"{found.step_ms:.1f} ± {found.step_spread_ms:.1f} ms"
    parts = (
        Evidence(
            label=say(f"doctor.experiment_{part.name}"),
            value=f"{part.ms:.1f} ± {part.spread_ms:.1f} ms, {part.share_ratio:.0%}",
            source=EXPERIMENT,
        )
        for part in found.parts
    )
    return (Evidence(label=say("doctor.experiment_step"), value=step, source=EXPERIMENT), *parts)


def device_name(case: Case) -> str:
    """The device as its driver calls it; empty when nobody said."""
    if case.record is not None and case.record.observed is not None:
        return case.record.observed.device_name
    return case.sweep.device_name if case.sweep is not None else ""


def yardstick_for(case: Case) -> Yardstick | None:
    """The healthy range of the way that the bytes go; None where it is not known."""
    transport, nvlink = transport_of(case), is_over_nvlink(case)
    if transport is None:
        return None
    if transport.startswith("P2P"):
        by_link: dict[bool | None, Route] = {True: "nvlink", False: "pcie"}
        route = by_link.get(nvlink)
    else:
        route = route_of(transport, ())
    name = device_name(case)
    fits = (y for y in YARDSTICKS if y.route == route)
    return next((y for y in fits if not y.devices or any(d in name for d in y.devices)), None)


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
