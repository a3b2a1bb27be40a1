"""Where events go: the run's own file, and through Accelerate to the trackers that were chosen.

A tracker is a guest. Whatever it raises becomes one warning, it is let go, and training goes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker

from ringside.events import (
    EpochTrained,
    Evaluated,
    Event,
    EventWriter,
    NullWriter,
    RunStarted,
    Warned,
    WindowTimed,
)
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.trackers import check_trackers
from ringside.words import say

PROJECT = "ringside"
GROUPS: dict[type[Event], str] = {WindowTimed: "train", EpochTrained: "epoch", Evaluated: "val"}
LEFT_OUT = frozenset({"t", "epoch", "step"})

# Where a tracker keeps what it writes on this machine, by the argument of its own `init`.
FOLDER_ARGUMENT = {"wandb": "dir", "mlflow": "logging_dir", "dvclive": "dir", "swanlab": "logdir"}

Writer = EventWriter | NullWriter


def make_writer(run: RunDir, spec: RunSpec, rank: int) -> Writer:
    """The writer of one rank: rank 0 owns the event file and the trackers.

    Raises SpecError on every rank when a tracker is unknown or not installed.
    """
    names = tuple(dict.fromkeys(spec.training.trackers))
    check_trackers(names)
    if rank != 0:
        return NullWriter()
    return TrackedWriter(run, spec, names) if names else EventWriter(run.events)


class TrackedWriter(EventWriter):
    """Appends events to the file and hands their numbers to trackers, by optimizer step."""

    def __init__(self, run: RunDir, spec: RunSpec, names: tuple[str, ...]) -> None:
        super().__init__(run.events)
        self.trackers: dict[str, GeneralTracker] = {}
        self._steps_per_epoch = 0
        for name in names:
            self._guarded(name, lambda name=name: self._start(name, run, spec))

    def write(self, event: Event) -> None:
        """Append to the file first: it is the truth, and a tracker may fail."""
        super().write(event)
        if isinstance(event, RunStarted):
            self._steps_per_epoch = event.steps_per_epoch
        values = scalars(event)
        if not values:
            return
        step = event.step if isinstance(event, WindowTimed) else self._end_of(event)
        for name, tracker in list(self.trackers.items()):
            self._guarded(name, lambda tracker=tracker: tracker.log(values, step=step))

    def close(self) -> None:
        """Let the trackers finish, then close the file."""
        for name, tracker in list(self.trackers.items()):
            self._guarded(name, tracker.finish)
        super().close()

    def _start(self, name: str, run: RunDir, spec: RunSpec) -> None:
        tracker = make_tracker(name, run.id, run.trackers)
        tracker.start()
        tracker.store_init_configuration(configuration(run, spec))
        self.trackers[name] = tracker

    def _end_of(self, event: Event) -> int:
        epoch: int = getattr(event, "epoch", 0)
        return epoch * self._steps_per_epoch

    def _guarded(self, name: str, action: Any) -> None:
        try:
            action()
        except Exception as error:
            self.trackers.pop(name, None)
            reason = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
            super().write(
                Warned(
                    code="tracker",
                    message=say("noted.tracker_failed", name=name, reason=reason),
                )
            )


def make_tracker(name: str, run_id: str, folder: Path) -> GeneralTracker:
    """Accelerate's tracker, not yet started; what it writes here goes below `folder`."""
    kind = LOGGER_TYPE_TO_CLASS[name]
    folder.mkdir(exist_ok=True)
    if kind.requires_logging_directory:
        return kind(run_id, logging_dir=str(folder))
    argument = FOLDER_ARGUMENT.get(name)
    return kind(PROJECT, **({argument: str(folder)} if argument else {}))


def scalars(event: Event) -> dict[str, float]:
    """The numbers of a window, an epoch or an evaluation as `group/field`; else nothing."""
    group = GROUPS.get(type(event))
    if group is None:
        return {}
    return {
        f"{group}/{name}": value
        for name in event.__struct_fields__
        if name not in LEFT_OUT
        and isinstance(value := getattr(event, name), int | float)
        and not isinstance(value, bool)
    }


def configuration(run: RunDir, spec: RunSpec) -> dict[str, str | int | float]:
    """What tells runs apart in a tracker's table."""
    return {
        "run": run.id,
        "preset": spec.preset,
        "strategy": spec.strategy,
        "mixed_precision": spec.accelerate.mixed_precision,
        "model": spec.model,
        "data": spec.data.label,
        "image_size": spec.data.image_size,
        "epochs": spec.epochs,
        "global_batch": spec.global_batch,
        "num_processes": spec.num_processes,
        "learning_rate": spec.learning_rate,
        "seed": spec.seed,
    }
