"""Figures that several checks and the walk-through take from a case; None where not measured."""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.phrasing import file_of
from ringside.machine.yardsticks import Route, Yardstick, route_of, yardstick_of_route
from ringside.measurements import Series
from ringside.measurements.comparison import Trial, trials
from ringside.nccl_log import worst_ring_edge
from ringside.nccl_log.derive import has_nvlink
from ringside.spec import RunSpec
from ringside.speedup import SpeedUp, speedup
from ringside.trace.bandwidth import bus_bandwidth


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


def source_of_bytes(case: Case) -> str:
    """Where `gradient_bytes` come from."""
    is_run = case.record is not None and case.record.observed is not None
    return "events.jsonl" if is_run else "trace"


def num_passes(case: Case) -> int:
    """How often the bytes cross in a step, see `wire_bytes`: 3 for FSDP, else 2."""
    spec = spec_of(case)
    return 3 if spec is not None and spec.strategy == "fsdp" else 2


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
    return yardstick_of_route(route, device_name(case))
