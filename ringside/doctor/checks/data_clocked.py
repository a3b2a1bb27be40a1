"""The steps wait for images, by the run's own clocks.

Seen when the loader keeps the slowest rank waiting for 10 % of the step or more, in the mean of ten
steps or more after the first epoch, without the first of each epoch. The clock is the host's: where
the device still has work queued, part of that wait costs nothing, so its share is the most that
this wait can cost, and the experiment with made-up images is surer. Eight GPUs were as fast as two
for want of workers; a ResNet-50 spent 31 % of its step waiting with 16 workers of an H200's host,
76 % with 8, 88 % with 4.
Where the experiment found the cost too (DATA-002), this is its evidence. Of this and what a trace
shows (DATA-001: few steps, which the profiler makes longer) the larger share is told.
What to do: more loader workers as far as there are cores, decoding on the GPU (`decoder=gpu`) where
there is one and it does not decode yet, prepared images (`ringside data prepare`), a faster disk.
Sources: dinov2#161 and #134, DIVA-DAF#19, pytorch#22451; the H200 figures were measured here.
"""

from __future__ import annotations

from ringside.doctor.bands import WARNING, severity_of
from ringside.doctor.case import Case
from ringside.doctor.clocks import steady_windows, timed_steps, window_ms, window_share
from ringside.doctor.decoding import decoding_to_try
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "DATA-010"
CAUSE: Cause = "data"
ORDER = 51

MAX_WORKERS = 16
SURE = 3
FEWEST_STEPS = 10


def check(case: Case) -> Finding | None:
    share, waited = window_share(case, "data"), window_ms(case, "data")
    record = case.record
    if record is None or share is None or waited is None or share < WARNING:
        return None
    if timed_steps(record) < FEWEST_STEPS:
        return None
    windows, workers = steady_windows(record), _workers(case)
    is_sure = len(windows) >= SURE and severity_of(share) == "critical"
    return finding_of(
        CODE,
        CAUSE,
        "high" if is_sure else "medium",
        share_ratio=share,
        evidence=(
            seen(
                "waiting for images", say("seen.a_step", amount=f"{waited:.1f} ms"), "events.jsonl"
            ),
            seen("step", f"{window_ms(case, 'step'):.1f} ms", "events.jsonl"),
            seen("windows", str(len(windows)), "events.jsonl"),
            seen("loader workers a rank", "-" if workers is None else str(workers), "events.jsonl"),
        ),
        values={"ms": waited, "decoding": decoding_to_try(case)},
        remedy=_remedy(case, workers),
    )


def _workers(case: Case) -> int | None:
    started = case.record.started if case.record is not None else None
    return started.num_workers if started is not None else None


def _remedy(case: Case, workers: int | None) -> Remedy | None:
    """The same preset with as many workers as there are cores for, if that is more."""
    spec, machine = spec_of(case), case.machine
    if spec is None or machine is None:
        return None
    more = min(machine.num_cores // spec.num_readers - 1, MAX_WORKERS)
    if more <= (workers or 0):
        return None
    return Remedy(preset=spec.preset, overrides={"num_workers": str(more)})
