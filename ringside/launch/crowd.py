"""Times the step of one device while others do the same beside it."""

from __future__ import annotations

from collections.abc import Callable

from ringside.launch.probe import launch_probe, probe_folder
from ringside.measurements import Crowded, Experiment
from ringside.measurements.crowd import crowd_of
from ringside.spec import RunSpec
from ringside.words import say as word


def measure_crowd(
    spec: RunSpec, *, seconds: float = 4.0, timeout_s: float = 300.0,
    say: Callable[[str], None] = lambda _: None,
) -> Crowded:  # fmt: skip
    """Blocks of the slowest rank; LaunchError when nothing could be timed."""
    say(word("estimate.crowd", n=spec.num_processes))
    arguments = ["--seconds", str(seconds), "--synthetic", "--without-reduction"]
    with probe_folder() as run:
        found = launch_probe(
            crowd_of(spec), run, "step", arguments, Experiment, timeout_s=timeout_s
        )
    return Crowded(
        num_processes=spec.num_processes,
        batch=spec.micro_batch,
        step_us=tuple(1000 * ms for ms in found.arms[0].step_ms),
    )
