"""From traces to facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringside.trace.activity import activity_of
from ringside.trace.bandwidth import bus_bandwidth
from ringside.trace.events import CollectiveCall, HostCalls, Trace
from ringside.trace.facts import Breakdown, Bucket, Facts, HostFacts, RankFacts, StepFacts
from ringside.trace.idle import idle_of
from ringside.trace.intervals import clip, intersect, join, subtract, total, union
from ringside.trace.steps import Window, step_of, windows
from ringside.trace.totals import counted, totals
from ringside.trace.waiting import Transfers, transfers

if TYPE_CHECKING:
    from ringside.trace.intervals import Spans, Times


def analyse(traces: Sequence[Trace]) -> Facts:
    """The facts of all ranks of one run; each trace is of another rank."""
    pairs = zip(traces, transfers(traces), strict=True)
    return Facts(ranks=tuple(_rank(trace, moved) for trace, moved in pairs))


def _rank(trace: Trace, moved: Transfers) -> RankFacts:
    spans = windows(trace)
    kept = activity_of(trace, moved, counted(trace))
    calls = [number for number, step in enumerate(moved.step) if _in_window(trace, int(step))]
    num = len(spans)
    reduces = [n for n in calls if trace.collectives[n].operation == "all_reduce"]
    sizes = [trace.collectives[n].num_bytes for n in reduces]
    known = [size for size in sizes if size is not None]
    transfer = intersect(kept.comm, kept.transfer)
    return RankFacts(
        rank=trace.rank,
        file=trace.file,
        world_size=trace.world_size,
        num_events=trace.num_events,
        num_steps=len(trace.steps),
        num_devices=trace.num_devices,
        num_data_parallel=_data_parallel(trace) / max(len(trace.steps), 1),
        is_cpu_estimate=trace.is_cpu_estimate,
        num_collectives=len(trace.collectives),
        num_matched=moved.num_matched,
        totals=totals(trace),
        transfer_us=total(transfer) / 1000,
        wait_us=total(kept.wait) / 1000,
        hidden_transfer_us=total(intersect(transfer, kept.compute)) / 1000,
        num_persistent=_num_counted(trace, trace.persistent) / num,
        breakdown=_breakdown(trace, moved, spans),
        host=_host(trace, spans),
        steps=_steps(trace, moved),
        buckets=_buckets(trace, moved, calls, num),
        num_all_reduces=len(reduces) / num,
        all_reduce_bytes=sum(known) / len(known) if known else None,
        all_reduce_us=_mean_us(trace, reduces),
        reduce_stretch_us=_stretch(trace, moved, reduces, kept.compute),
    )


def _data_parallel(trace: Trace) -> int:
    """Forwards of nn.DataParallel; before torch 1.10 they had no name of their own."""
    counts = trace.num_operators
    unnamed = min(counts.get("Broadcast", 0), counts.get("Gather", 0))
    return counts.get("DataParallel.forward", 0) or (unnamed if trace.num_devices > 1 else 0)


def _num_counted(trace: Trace, launches: Times) -> int:
    """How many were launched in a step that counts."""
    return sum(_in_window(trace, int(step)) for step in step_of(trace, launches))


def _in_window(trace: Trace, step: int) -> bool:
    """Whether a collective counts: launched in a step, not the last of several."""
    if not trace.steps:
        return True
    return step >= 0 and (step < len(trace.steps) - 1 or len(trace.steps) == 1)


def _breakdown(trace: Trace, moved: Transfers, spans: Sequence[Window]) -> Breakdown:
    """Wall-clock time of all windows together, each moment counted once."""
    start, end = spans[0].start, spans[-1].end
    line = activity_of(trace, moved)
    transfer = subtract(line.transfer, line.compute)
    wait = subtract(line.wait, line.compute)
    memory = subtract(line.busy, join(line.compute, line.comm))
    idle = idle_of(trace, start, end)
    parts = {
        "compute_us": line.compute, "exposed_transfer_us": transfer, "exposed_wait_us": wait,
        "memory_us": memory, "data_idle_us": idle.data, "host_wait_us": idle.host_wait,
        "kernel_wait_us": idle.kernel_wait, "other_idle_us": idle.other,
    }  # fmt: skip
    return Breakdown(
        wall_us=(end - start) / 1000,
        **{name: total(clip(part, start, end)) / 1000 for name, part in parts.items()},
    )


def _host(trace: Trace, spans: Sequence[Window]) -> HostFacts:
    marks = trace.steps
    start = spans[0].start
    # After the last mark the profiler itself synchronises.
    end = spans[-1].end if len(marks) != 1 else marks[0].end
    num = len(spans)

    def within(calls: HostCalls) -> tuple[float, float]:
        keep = (calls.start >= start) & (calls.start < end)
        covered = clip(union(calls.start[keep], calls.end[keep]), start, end)
        return int(keep.sum()) / num, total(covered) / 1000

    syncs, logs, items, searches = map(
        within,
        (trace.synchronisations, trace.logging_syncs, trace.items, trace.unused_searches),
    )
    return HostFacts(
        data_wait_us=within(trace.data_waits)[1],
        num_synchronisations=syncs[0],
        synchronised_us=syncs[1],
        num_logging_syncs=logs[0],
        logging_us=logs[1],
        num_items=items[0],
        item_us=items[1],
        blocked_us=within(trace.blocked)[1],
        num_searches=searches[0],
        search_us=searches[1],
        num_sync_batchnorms=trace.num_operators.get("SyncBatchNorm", 0) / max(len(marks), 1),
    )


def _steps(trace: Trace, moved: Transfers) -> tuple[StepFacts, ...]:
    import numpy as np

    result = []
    launched_in = step_of(trace, trace.work.launch)
    for number, mark in enumerate(trace.steps):
        line = activity_of(trace, moved, np.asarray(launched_in == number))
        exposed = subtract(line.comm, line.compute)
        result.append(
            StepFacts(
                name=mark.name,
                step_us=(mark.end - mark.start) / 1000,
                comm_us=total(line.comm) / 1000,
                exposed_us=total(exposed) / 1000,
                compute_us=total(line.compute) / 1000,
            )
        )
    return tuple(result)


def _buckets(trace: Trace, moved: Transfers, calls: list[int], num: int) -> tuple[Bucket, ...]:
    import numpy as np

    rows: dict[CollectiveCall, list[int]] = defaultdict(list)
    for at in calls:
        call = trace.collectives[at]
        kind = CollectiveCall(
            index=-1, operation=call.operation, num_bytes=call.num_bytes, dtype=call.dtype,
            group_size=call.group_size or trace.world_size,
        )  # fmt: skip
        rows[kind].append(at)
    result = []
    for kind, members in rows.items():
        transfer = float(np.median(moved.transfer[members])) / 1000
        duration = float(np.median(_durations(trace, members))) / 1000
        size, group = kind.num_bytes, kind.group_size
        result.append(
            Bucket(
                operation=kind.operation, num_bytes=size, dtype=kind.dtype, group_size=group,
                num_per_step=len(members) / num, duration_us=duration, transfer_us=transfer,
                busbw_bytes_per_s=bus_bandwidth(kind.operation, size, group, transfer / 1e6)
                if size and group else None,
            )
        )  # fmt: skip
    return tuple(sorted(result, key=lambda b: -b.num_per_step * b.duration_us))


def _durations(trace: Trace, calls: list[int]) -> Times:
    import numpy as np

    rows = np.array([trace.collectives[at].index for at in calls], np.int64)
    return np.asarray(trace.work.end[rows] - trace.work.start[rows], np.int64)


def _mean_us(trace: Trace, calls: list[int]) -> float | None:
    return float(_durations(trace, calls).mean()) / 1000 if calls else None


def _stretch(trace: Trace, moved: Transfers, reduces: list[int], compute: Spans) -> float:
    """First start to last end of each step's all-reduces, less the compute in between."""
    by_step: dict[int, list[int]] = defaultdict(list)
    for at in reduces:
        by_step[int(moved.step[at])].append(trace.collectives[at].index)
    result = 0
    for rows in by_step.values():
        start, end = int(trace.work.start[rows].min()), int(trace.work.end[rows].max())
        result += end - start - total(clip(compute, start, end))
    return result / 1000
