"""The run's own clocks: its windows without a profiler, as means per optimizer step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from ringside.doctor.case import Case
from ringside.events import WindowTimed, without_starts
from ringside.run import RunRecord


def steady_windows(record: RunRecord | None) -> list[WindowTimed]:
    """Windows after the first epoch (of a run of one epoch: after the first window), up to where
    the profiler first recorded, without the steps in which an epoch starts.
    """
    if record is None or not record.windows:
        return []
    clean = record.clean_windows
    later = [window for window in clean if window.epoch > record.windows[0].epoch]
    return without_starts(later or clean[1:])


def timed_steps(record: RunRecord | None) -> int:
    """Steps in the steady windows."""
    return sum(window.num_steps for window in steady_windows(record))


def mean_ms(windows: Sequence[WindowTimed], part: str) -> float | None:
    """Milliseconds a step of a part (step, data, forward, backward, optimizer); every step counts
    the same, however many a window holds."""
    return _mean((getattr(window, f"{part}_ms"), window.num_steps) for window in windows)


def window_ms(case: Case, part: str) -> float | None:
    """The mean over the steady windows of a part, on the slowest rank of each window."""
    return mean_ms(steady_windows(case.record), part)


def alone_ms(case: Case) -> float | None:
    """What the baseline's device needs at its rate for the images that each device here handles.

    An optimizer step of a run that accumulates holds several steps of a baseline that does not, and
    one optimizer instead of several: there it is an upper figure.
    """
    base = mean_ms(steady_windows(case.baseline), "step")
    own_spec = case.record.spec if case.record is not None else None
    base_spec = case.baseline.spec if case.baseline is not None else None
    if base is None or own_spec is None or base_spec is None:
        return None
    own, other = (spec.global_batch / spec.num_devices for spec in (own_spec, base_spec))
    return base * own / other


def window_lead_ms(case: Case, part: str) -> float | None:
    """By how much the slowest rank exceeds the fastest in a part: the middle window, which one
    hiccup does not move."""
    pairs = (
        (getattr(window, f"{part}_ms"), getattr(window, f"{part}_ms_min"))
        for window in steady_windows(case.record)
    )
    leads = [slow - fast for slow, fast in pairs if slow is not None and fast is not None]
    return median(leads) if leads else None


def window_share(case: Case, part: str) -> float | None:
    """A part of the step by the run's own clocks, as a share of the step."""
    step, one = window_ms(case, "step"), window_ms(case, part)
    return one / step if step and one is not None else None


def profiled_ms(case: Case) -> float | None:
    """A step in the trace of the rank that sets the pace."""
    if case.facts is None:
        return None
    pace = case.facts.pace
    return pace.breakdown.wall_us / pace.num_counted_steps / 1000


def step_ms(case: Case) -> float | None:
    """An optimizer step: by the run's own clocks, else by the trace of the rank in front."""
    known = window_ms(case, "step")
    return profiled_ms(case) if known is None else known


def _mean(pairs: Iterable[tuple[float | None, int]]) -> float | None:
    known = [(value, num) for value, num in pairs if value is not None]
    steps = sum(num for _, num in known)
    return sum(value * num for value, num in known) / steps if steps else None
