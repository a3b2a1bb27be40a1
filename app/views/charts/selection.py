"""Which charts a case can fill, and why the others are missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from app.views.charts.all_reduce import Healthy, all_reduce_curve, base_series
from app.views.charts.figure import Figure
from app.views.charts.scaling import ScalingPoint, scaling_curve
from app.views.charts.timeline import timeline
from app.views.charts.topology import topology
from app.views.charts.waterfall import rank_waterfall, run_waterfall, trace_waterfall
from ringside.doctor import Case
from ringside.errors import RingsideError
from ringside.estimate import Estimate
from ringside.machine import Machine
from ringside.machine.yardsticks import yardstick_of
from ringside.measurements import Sweep
from ringside.run import RunRecord, fold_run
from ringside.rundir import RunDir, list_run_dirs
from ringside.spec import RunSpec
from ringside.speedup import baseline_of, find_baseline, speedup
from ringside.words import say

MAX_RUNS = 200


def figures_of(case: Case, root: Path) -> tuple[Figure, ...]:
    """The charts that the case has the numbers for, what is asked first at the top."""
    return tuple(figure for figure in _figures(case, root) if figure is not None)


def _figures(case: Case, root: Path) -> Iterator[Figure | None]:
    if case.facts is not None:
        yield trace_waterfall(case.facts)
        yield _timeline(case)
    elif case.record is not None:
        yield rank_waterfall(case.ranks) or run_waterfall(case.record.clean_windows)
    if case.sweep is not None:
        yield all_reduce_curve(case.sweep, bucket_bytes(case), healthy(case.sweep, case.machine))
    if case.record is not None:
        yield scaling_curve(scaling_points(root, case.record))
    if case.machine is not None:
        yield topology(case.machine)


def gaps_of(case: Case, figures: tuple[Figure, ...]) -> tuple[str, ...]:
    """A sentence for each chart that is not there, with what would fill it."""
    drawn = {figure.name for figure in figures}
    run = case.record.name if case.record is not None else ""
    missing = [name for name in ("timeline", "all-reduce", "scaling") if name not in drawn]
    if case.record is None:
        missing = [name for name in missing if name == "all-reduce"]
    elif case.record.spec is not None and case.record.spec.num_devices == 1:
        missing = [name for name in missing if name == "timeline"]
    return tuple(say(f"charts.no_{name.replace('-', '_')}", run=run) for name in missing)


def _timeline(case: Case) -> Figure | None:
    """Traces are read again: the facts hold sums, not moments."""
    from ringside.trace import read_traces
    from ringside.trace.lanes import lanes

    try:
        traces, _ = read_traces([Path(path) for path in case.traces])
    except RingsideError:
        return None
    return timeline(lanes(traces))


def bucket_bytes(case: Case) -> tuple[int, ...]:
    """Gradient buckets in bytes: as DDP says, else as the traces show."""
    ddp = case.record.ddp if case.record is not None else None
    if ddp is not None and (ddp.rebuilt_bucket_bytes or ddp.bucket_bytes):
        return ddp.rebuilt_bucket_bytes or ddp.bucket_bytes
    if case.facts is None:
        return ()
    found: list[int] = []
    for bucket in case.facts.pace.buckets:
        if bucket.operation == "all_reduce" and bucket.num_bytes:
            found += [bucket.num_bytes] * max(1, round(bucket.num_per_step))
    return tuple(found)


def healthy(sweep: Sweep, machine: Machine | None) -> Healthy | None:
    """The published range of the way that was measured; None where nobody published one."""
    base = base_series(sweep)
    if base is None:
        return None
    found = yardstick_of(base.transport, sweep.device_name, machine.links if machine else ())
    if found is None:
        return None
    way = say(f"charts.way_{found.route}")
    return Healthy(found.low_bytes_per_s, found.high_bytes_per_s, way, found.source)


def scaling_points(root: Path, record: RunRecord) -> list[ScalingPoint]:
    """Speed-ups of the finished runs that differ from this one in the number of devices only, and
    what was predicted of this one."""
    if record.spec is None:
        return []
    found: dict[int, ScalingPoint] = {}
    own = RunDir(Path(record.path))
    predicted = own.read(own.estimate, Estimate)
    for run in list_run_dirs(root)[:MAX_RUNS]:
        spec = run.read(run.spec, RunSpec)
        if spec is None or not run.exit.exists() or not _scales(record.spec, spec):
            continue
        try:
            other = fold_run(run)
        except RingsideError:
            continue
        gain = speedup(other, find_baseline(root, other)).value
        if gain is not None and spec.num_devices not in found:
            found[spec.num_devices] = ScalingPoint(spec.num_devices, gain, other.name)
    if predicted is None or predicted.speedup is None:
        return [*found.values()]
    return [*found.values(), ScalingPoint(predicted.num_devices, predicted.speedup)]


def _scales(spec: RunSpec, other: RunSpec) -> bool:
    """Whether two requests spread the same work: one strategy, one baseline."""
    if (spec.strategy, spec.training) != (other.strategy, other.training):
        return False
    return _work(baseline_of(spec)) == _work(baseline_of(other))


def _work(spec: RunSpec) -> tuple[object, ...]:
    return (
        spec.model, spec.data, spec.accelerate, spec.training, spec.micro_batch, spec.device,
        spec.threads_per_device, spec.environment,
    )  # fmt: skip
