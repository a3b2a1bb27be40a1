"""What is known of a run now: one fold over the files of its directory.

`RunReader` keeps offsets, so a poll costs only what is new; `fold_run` is the same fold from the
start. The page, the terminal and reports are views of the `RunRecord` that comes out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from ringside import events as ev
from ringside.errors import RunDirError
from ringside.hang import Hang
from ringside.records import (
    ExitRecord,
    Owner,
    RankError,
    first_failure,
    is_gone,
    is_queued,
    rank_errors,
)
from ringside.requested import Asked, read_requests
from ringside.rundir import AnyFormat, RunDir, check_format, list_run_dirs, read_new_lines
from ringside.spec import FORMAT, Observed, RunSpec
from ringside.words import say

State = Literal[
    "queued", "launching", "running", "stopping", "completed", "stopped", "failed", "lost"
]
FINAL_STATES = frozenset({"completed", "stopped", "failed", "lost"})
IDLE_STATES = FINAL_STATES | {"queued"}
"""Of a run that uses no device."""


class EpochRow(msgspec.Struct, kw_only=True):
    """One epoch; scores are None until it has been evaluated.

    Time and loss are of `num_optimizer_steps` steps: fewer than an epoch has where the run went on
    midway in it. `carried`: the run that this one continues trained it. `profiled`: the profiler
    ran in it or before it.
    """

    epoch: int
    epoch_time_s: float
    samples_per_s: float
    num_samples: int
    train_loss: float | None
    num_optimizer_steps: int | None = None
    data_ratio: float | None = None
    collectives_per_step: float | None = None
    skipped_steps: int | None = None
    num_profiled_steps: int = 0
    profiled: bool = False
    carried: bool = False
    val_loss: float | None = None
    auc_macro: float | None = None
    num_auc_classes: int | None = None
    f1_macro: float | None = None
    f1_micro: float | None = None
    map_macro: float | None = None
    accuracy: float | None = None
    hamming_loss: float | None = None
    f1_macro_tuned: float | None = None
    num_evaluated: int | None = None
    undefined_classes: tuple[str, ...] = ()
    untrained_classes: tuple[str, ...] = ()

    @property
    def whole_time_s(self) -> float | None:
        """The time of the epoch; None where it lacks that of recorded steps."""
        return None if self.num_profiled_steps else self.epoch_time_s


class RunRecord(msgspec.Struct, kw_only=True):
    """Everything a view needs; times in seconds since 1970, missing is None."""

    id: str
    name: str
    path: str
    state: State = "launching"
    spec: RunSpec | None = None
    observed: Observed | None = None
    started: ev.RunStarted | None = None
    created_t: float | None = None
    finished_t: float | None = None
    phase: str | None = None
    epoch: int | None = None
    epochs: list[EpochRow] = []
    windows: list[ev.WindowTimed] = []
    checkpoints: list[ev.CheckpointSaved] = []
    profiles: list[ev.Profiled] = []
    ddp: ev.DdpReported | None = None
    warnings: list[ev.Warned] = []
    unknown: list[ev.UnknownEvent] = []
    stop_agreed: ev.StopAgreed | None = None
    failure: RankError | None = None
    exit: ExitRecord | None = None
    owner: Owner | None = None
    total_time_s: float | None = None
    last_event_t: float | None = None
    hang: Hang | None = None
    asked: tuple[Asked, ...] = ()

    @property
    def final(self) -> bool:
        """Whether the state can no longer change."""
        return self.state in FINAL_STATES

    @property
    def steady_epochs(self) -> list[EpochRow]:
        """The epochs that this run trained itself, but for the first, which is warm-up.

        Nor those with the profiler, or after it: a closed one slows a launch-bound step by half.
        """
        own = [row for row in self.epochs if not row.carried][1:]
        return [row for row in own if not row.profiled]

    @property
    def steady_samples_per_s(self) -> float | None:
        """Images per second over the steady epochs; None without one."""
        rows = self.steady_epochs
        seconds = sum(row.epoch_time_s for row in rows)
        return sum(row.num_samples for row in rows) / seconds if seconds else None

    @property
    def clean_windows(self) -> list[ev.WindowTimed]:
        """The windows before the profiler first recorded; all of them where it never did."""
        num_clean = next(
            (n for n, window in enumerate(self.windows) if window.profiled), len(self.windows)
        )
        return self.windows[:num_clean]

    @property
    def traces(self) -> tuple[str, ...]:
        """Files of the newest profile, relative to the run directory; each has one rank."""
        return self.profiles[-1].files if self.profiles else ()

    @property
    def best_checkpoint(self) -> str | None:
        """Path of the best checkpoint, relative to the run directory."""
        return next((c.path for c in reversed(self.checkpoints) if c.best), None)

    def time_left_s(self, now: float | None = None) -> float | None:
        """Estimated seconds until the last epoch is trained; None before the first estimate."""
        if self.final or self.spec is None or self.started is None or not self.windows:
            return None
        last = self.windows[-1]
        steps_left = self.spec.epochs * self.started.steps_per_epoch - last.step
        rate = self.epochs[-1].samples_per_s if self.epochs else last.samples_per_s
        left = steps_left * self.spec.global_batch / rate
        since = (now or time.time()) - last.t
        return max(0.0, left - min(since, left))


class RunReader:
    """Follows one run; `poll` reads only what is new and says whether anything changed."""

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self.record = RunRecord(id=run.id, name=run.name, path=str(run.path))
        self._offset = 0

    def poll(self) -> bool:
        """Bring the record up to date; True when it changed.

        A bad file is passed over; only a run of a newer Ringside is a RunDirError.
        """
        before = self._mark()
        if self.record.spec is None:
            self._read_spec()
        if not self.record.final or self.record.exit is None:
            self._read_events()
            self._read_identity()
            self.record.state = self._state()
        return before != self._mark()

    def _mark(self) -> tuple[object, ...]:
        record = self.record
        return (
            self._offset, record.state, record.spec, record.owner, record.failure, record.exit,
            record.hang, record.asked,
        )  # fmt: skip

    def _read_spec(self) -> None:
        written = self.run.read(self.run.spec, AnyFormat)
        if written is not None:
            check_format(written.format, f"{self.run.id}/spec.json")
        self.record.spec = self.run.read(self.run.spec, RunSpec)
        if self.record.spec is None:
            return
        self.record.created_t = self.run.spec.stat().st_mtime

    def _read_events(self) -> None:
        data, self._offset = read_new_lines(self.run.events, self._offset)
        if data:
            fold_events(self.record, ev.decode_lines(data))

    def _read_identity(self) -> None:
        record = self.record
        if record.owner is None or record.owner.waiting:
            record.owner = self.run.read(self.run.owner, Owner) or record.owner
        if record.exit is None:
            record.exit = self.run.read(self.run.exit, ExitRecord)
            if record.exit is not None:
                # The trainer may have written its last lines after our read and before its exit.
                self._read_events()
                record.finished_t = record.exit.finished
        record.failure = first_failure(rank_errors(self.run), record.exit) or record.failure
        record.hang = self.run.read(self.run.hang, Hang)
        record.asked = read_requests(self.run)

    def _state(self) -> State:
        record = self.record
        if record.exit is not None:
            return record.exit.state
        if record.owner is not None and is_gone(record.owner):
            return "failed" if record.failure else "lost"
        if self.run.requested("stop"):
            return "stopping"
        if record.spec is not None and is_queued(record.spec, record.owner):
            return "queued"
        return "running" if record.started is not None else "launching"


def fold_events(record: RunRecord, batch: list[ev.Event]) -> None:
    """Apply events in order; pure but for the record it is given."""
    for event in batch:
        if fold := _FOLD.get(type(event)):
            fold(record, event)
    if batch:
        record.last_event_t = batch[-1].t or record.last_event_t


def fold_run(run: RunDir) -> RunRecord:
    """The record of a run, read once from the start."""
    reader = RunReader(run)
    reader.poll()
    return reader.record


def _started(record: RunRecord, event: Any) -> None:
    record.started, record.observed = event, event.observed


def _phase(record: RunRecord, event: Any) -> None:
    record.phase = event.phase
    record.epoch = event.epoch or record.epoch


def _trained(record: RunRecord, event: Any) -> None:
    record.epochs.append(
        EpochRow(
            epoch=event.epoch,
            epoch_time_s=event.epoch_time_s,
            samples_per_s=event.samples_per_s,
            num_samples=event.num_samples,
            train_loss=event.train_loss,
            num_optimizer_steps=event.num_optimizer_steps,
            data_ratio=event.data_ratio,
            collectives_per_step=event.collectives_per_step,
            skipped_steps=event.skipped_steps,
            num_profiled_steps=event.num_profiled_steps,
            profiled=event.profiled,
            carried=event.carried,
        )
    )


def _evaluated(record: RunRecord, event: Any) -> None:
    row = next((row for row in reversed(record.epochs) if row.epoch == event.epoch), None)
    if row is None:
        return
    for name in (
        "val_loss", "auc_macro", "num_auc_classes", "f1_macro", "f1_micro", "map_macro",
        "accuracy", "hamming_loss", "f1_macro_tuned", "num_evaluated", "undefined_classes",
        "untrained_classes",
    ):  # fmt: skip
        setattr(row, name, getattr(event, name))


def _finished(record: RunRecord, event: Any) -> None:
    record.total_time_s = event.total_time_s


def _failed(record: RunRecord, event: Any) -> None:
    record.failure = record.failure or RankError(rank=0, t=event.t, sentence=event.message)


_FOLD: dict[type[ev.Event], Callable[[RunRecord, Any], None]] = {
    ev.RunStarted: _started,
    ev.PhaseStarted: _phase,
    ev.WindowTimed: lambda record, event: record.windows.append(event),
    ev.EpochTrained: _trained,
    ev.Evaluated: _evaluated,
    ev.CheckpointSaved: lambda record, event: record.checkpoints.append(event),
    ev.DdpReported: lambda record, event: setattr(record, "ddp", event),
    ev.Profiled: lambda record, event: record.profiles.append(event),
    ev.Warned: lambda record, event: record.warnings.append(event),
    ev.StopAgreed: lambda record, event: setattr(record, "stop_agreed", event),
    ev.RunFinished: _finished,
    ev.RunFailed: _failed,
    ev.UnknownEvent: lambda record, event: record.unknown.append(event),
}


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the list of runs."""

    id: str
    state: State
    preset: str | None
    data: str | None
    started: float | None
    model: str | None = None
    num_processes: int | None = None
    retry_of: str | None = None
    retried_as: str | None = None


def list_runs(root: Path) -> list[RunSummary]:
    """All runs, newest first; reads three small files a run, events only of those under way."""
    return [summary for run in list_run_dirs(root) if (summary := summarise(run)) is not None]


def summarise(run: RunDir) -> RunSummary | None:
    """One line of the list; None for a folder without a spec that this Ringside reads."""
    spec = run.read(run.spec, RunSpec)
    if spec is None or spec.format > FORMAT:
        return None
    ended = run.read(run.exit, ExitRecord)
    owner = run.read(run.owner, Owner)
    return RunSummary(
        id=run.id,
        state=ended.state if ended else fold_run(run).state,
        preset=spec.preset,
        data=spec.data.label,
        started=owner.started if owner else None,
        model=spec.model,
        num_processes=spec.num_processes,
        retry_of=spec.retry_of,
        retried_as=ended.retried_as if ended else None,
    )


def running_beside(root: Path, spec: RunSpec, num_cores: int) -> list[str]:
    """Names of unfinished runs that a run of `spec` would share its GPUs or cores with.

    On a CPU, processes share when all of them together have more threads than there are cores.
    A run of a newer Ringside, which nobody here can read, counts for none.
    """
    live = [
        (run.name, other)
        for run in list_run_dirs(root)
        if not run.exit.exists() and (other := run.read(run.spec, RunSpec)) is not None
        and other.format <= FORMAT and other.device == spec.device
        and fold_run(run).state not in IDLE_STATES
    ]  # fmt: skip
    if spec.device == "cuda":
        return [name for name, other in live if set(other.gpu_ids) & set(spec.gpu_ids)]
    threads = sum(other.num_processes * other.threads_per_device for _, other in live)
    crowded = threads + spec.num_processes * spec.threads_per_device > num_cores
    return [name for name, _ in live] if crowded else []


def require_spec(record: RunRecord) -> RunSpec:
    """The spec, or a RunDirError that says which file is missing."""
    if record.spec is None:
        raise RunDirError(say("runs_folder.no_spec", path=record.path))
    return record.spec
