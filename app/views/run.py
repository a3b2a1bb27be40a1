"""One run as the page shows it: texts and points, made from the record and its baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from app.views import figures
from app.views.classes import ClassTable, class_tables
from app.views.counts import EARLY_STOP, classes_with, epoch_lines, epoch_name, step_lines
from app.views.ending import failure_lines
from app.views.hanging import HangView, hang_lines, hang_view
from app.views.ranks import RankSplit, rank_split
from app.views.setup import setup_lines, word_for
from app.views.step import Step, newest_windows, quantile_lines, step_view
from app.views.traces import trace_lines
from app.views.trials import checkpoint_of
from ringside.asking import asked_lines
from ringside.checkpoints import CheckpointName, find_resumable, read_about
from ringside.errors import RunDirError
from ringside.remedies import failure_kind, kind_title, what_to_try
from ringside.run import FINAL_STATES, EpochRow, RunRecord, require_spec
from ringside.rundir import RunDir
from ringside.speedup import SpeedUp, speedup
from ringside.words import say, translated
from ringside.words.retelling import retold

T = TypeVar("T")


@dataclass(frozen=True)
class Tile:
    """One large number; `tone` is good, bad or plain.

    A value that counts down reaches zero at `until_t` (seconds since 1970).
    """

    value: str
    label: str
    tone: str = "plain"
    until_t: float | None = None


@dataclass(frozen=True)
class Ending:
    """Why a run ended badly or early: a sentence, perhaps a rank and its traceback.

    `remedies` are what to try, the most promising first; text between backquotes is a command.
    """

    title: str
    sentence: str
    bad: bool
    traceback: str | None = None
    more: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """The weights of a run that can be tried, and after which step they were saved."""

    name: CheckpointName
    step: int | None


@dataclass(frozen=True)
class RunView:
    """Everything of a run page that changes only when the run does."""

    id: str
    name: str
    state: str
    facts: tuple[str, ...]
    tiles: tuple[Tile, ...]
    epochs: tuple[tuple[str, ...], ...]
    step: Step | None
    ending: Ending | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    setup: tuple[tuple[str, str], ...]
    baseline_id: str | None
    classes: tuple[ClassTable, ...] = ()
    epoch_lines: tuple[str, ...] = ()
    step_lines: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    ranks: RankSplit | None = None
    hang: HangView | None = None
    asked: tuple[str, ...] = ()
    asked_kinds: tuple[str, ...] = ()
    resumable: bool = False
    steps_per_epoch: int = 0
    global_batch: int = 0

    @property
    def scale(self) -> dict[str, int]:
        """What turns optimizer steps into epochs and images."""
        return {"per_epoch": self.steps_per_epoch, "batch": self.global_batch}

    @property
    def is_over(self) -> bool:
        """Whether the state can no longer change."""
        return self.state in FINAL_STATES

    @property
    def can_profile(self) -> bool:
        """Whether steps are still to come that could be recorded."""
        return self.state == "running"

    @property
    def stoppable(self) -> bool:
        """Whether Stop makes sense now."""
        return self.state in ("queued", "launching", "running")


def run_view(record: RunRecord, baseline: RunRecord | None) -> RunView:
    """The view of a run; raises RunDirError when its spec cannot be read."""
    spec = require_spec(record)
    gain = speedup(record, baseline)
    windows, run = newest_windows(record.windows), RunDir(Path(record.path))
    return RunView(
        id=record.id,
        name=record.name,
        state=record.state,
        facts=(spec.preset, spec.model, spec.data.label, progress(record)),
        tiles=tuple(_tiles(record, gain)),
        epochs=tuple(_epoch_line(row, record, gain) for row in record.epochs),
        step=step_view(windows),
        ending=_ending(record),
        warnings=tuple(
            retold(w.message) for w in record.warnings if w.code not in ("data", EARLY_STOP)
        ),
        notes=(*_data_notes(record), *hang_lines(record)),
        setup=tuple(setup_lines(record)),
        baseline_id=gain.baseline_id,
        classes=class_tables(record),
        epoch_lines=epoch_lines(record),
        step_lines=(*quantile_lines(windows), *step_lines(record), *trace_lines(record)),
        checkpoint=_checkpoint(record),
        ranks=rank_split(run),
        hang=hang_view(record),
        asked=asked_lines(record),
        asked_kinds=tuple(asked.kind for asked in record.asked),
        resumable=_resumable(record, run),
        steps_per_epoch=record.started.steps_per_epoch if record.started else 0,
        global_batch=spec.global_batch,
    )


def progress(record: RunRecord) -> str:
    """`epoch 4 of 10`, or what it does before the first epoch."""
    total = require_spec(record).epochs
    if record.state == "queued":
        return say("queue.progress")
    if record.final:
        done = record.epochs[-1].epoch if record.epochs else 0
        return say("run.epochs_done", n=done, total=total)
    if record.epoch:
        return say("run.epoch_of", n=record.epoch, total=total)
    return word_for("phase", record.phase or "waiting")


def _time_tile(record: RunRecord) -> Tile:
    """What is left, as it was estimated last, or what it took."""
    if record.final:
        return Tile(figures.seconds(_total_time_s(record)), say("tile.total"))
    if _stands_still(record):
        return Tile(figures.DASH, say("tile.left_standing"))
    then = record.windows[-1].t if record.windows else None
    left_s = record.time_left_s(then)
    until_t = None if left_s is None or then is None else then + left_s
    return Tile(figures.whole_seconds(left_s), say("tile.left"), until_t=until_t)


def _total_time_s(record: RunRecord) -> float | None:
    if record.total_time_s is not None or record.exit is None:
        return record.total_time_s
    return record.exit.finished - record.exit.started


def _tiles(record: RunRecord, gain: SpeedUp) -> Iterator[Tile]:
    yield _epoch_tile(record.epochs)
    yield _rate_tile(record)
    yield _speedup_tile(gain)
    scored = next((row for row in reversed(record.epochs) if row.num_evaluated), None)
    yield _auc_tile(record, scored)
    yield _f1_tile(record, scored)
    yield _time_tile(record)


def _epoch_tile(rows: Sequence[EpochRow]) -> Tile:
    if not rows:
        return Tile(figures.DASH, say("tile.epoch_time"))
    label = "tile.epoch_warm_up" if len(rows) == 1 else "tile.epoch_n"
    newest = next((row for row in reversed(rows) if row.whole_time_s is not None), rows[-1])
    return Tile(figures.seconds(newest.whole_time_s), say(label, n=newest.epoch))


def _rate_tile(record: RunRecord) -> Tile:
    steady = record.steady_samples_per_s
    if record.final or not record.windows:
        return Tile(figures.count(steady), say("tile.rate"))
    if _stands_still(record):
        return Tile(figures.DASH, say("tile.rate_standing"))
    return Tile(figures.count(record.windows[-1].samples_per_s), say("tile.rate_now"))


def _stands_still(record: RunRecord) -> bool:
    """Whether no rank comes on any more; the newest window tells of the time before."""
    return hang_view(record) is not None


def _speedup_tile(gain: SpeedUp) -> Tile:
    if gain.value is None and gain.baseline_id and gain.samples_per_s is None:
        return Tile(figures.DASH, say("tile.speedup_warm_up"))
    if gain.value is None:
        return Tile(figures.DASH, say("tile.no_speedup", reason=gain.reason or ""))
    tone = "good" if gain.value >= 1.05 else "bad" if gain.value < 1 else "plain"
    return Tile(figures.ratio(gain.value), say("tile.speedup", scaling=scaling(gain)), tone)


def scaling(gain: SpeedUp) -> str:
    """In which sense the speed-up is meant: weak or strong scaling."""
    return say(f"scaling.{gain.scaling}") if gain.scaling else figures.DASH


def _auc_tile(record: RunRecord, scored: EpochRow | None) -> Tile:
    if scored is None:
        return Tile(figures.DASH, say("tile.auc"))
    total = record.started.num_classes if record.started else figures.DASH
    label = say("tile.auc_classes", n=scored.num_auc_classes, m=total)
    return Tile(figures.score(scored.auc_macro), label)


def _f1_tile(record: RunRecord, scored: EpochRow | None) -> Tile:
    counted = classes_with(record, scored, "f1") if scored else None
    label = say("tile.f1")
    if counted is not None and counted[0] < counted[1]:
        label = say("tile.f1_classes", n=counted[0], m=counted[1])
    return Tile(figures.score(scored.f1_macro if scored else None), label)


def _epoch_line(row: EpochRow, record: RunRecord, gain: SpeedUp) -> tuple[str, ...]:
    """The cells of one row of the epoch table."""
    base = gain.baseline_samples_per_s
    speed = figures.ratio(row.samples_per_s / base) if base else figures.DASH
    speed = say("run.profiled") if row.profiled else speed
    return (
        epoch_name(row, record),
        figures.seconds(row.whole_time_s),
        figures.count(row.samples_per_s),
        say("run.warm_up") if row.epoch == 1 else speed,
        figures.score(row.train_loss),
        figures.score(row.auc_macro),
        figures.score(row.f1_macro),
    )


def thinned(points: Sequence[T], limit: int) -> list[T]:
    """At most `limit` of the points, evenly spaced, the newest always among them."""
    if len(points) <= limit:
        return list(points)
    last = len(points) - 1
    return [points[i * last // (limit - 1)] for i in range(limit)]


def _checkpoint(record: RunRecord) -> Checkpoint | None:
    """The best one, else the last; a folder that was removed since is none."""
    found = checkpoint_of(RunDir(Path(record.path)))
    if found is None:
        return None
    name, folder = found
    try:
        return Checkpoint(name, read_about(folder).step)
    except RunDirError:
        return None


def _resumable(record: RunRecord, run: RunDir) -> bool:
    """Whether the run ended early and has a checkpoint to go on from."""
    return record.final and record.state != "completed" and find_resumable(run) is not None


def _data_notes(record: RunRecord) -> Iterator[str]:
    """What the data say of themselves, in the language of the reader where that is known."""
    notes = (warning.message for warning in record.warnings if warning.code == "data")
    return (translated(f"data_source.{note}", retold(note)) for note in notes)


def _ending(record: RunRecord) -> Ending | None:
    if not record.final or record.state == "completed":
        return None
    failure = record.failure
    reason = retold(record.exit.reason) if record.exit else say("run.owner_gone")
    kind, remedies = failure_kind(record), what_to_try(record)
    if record.state != "failed" or failure is None:
        title, bad = say(f"ending.{record.state}"), record.state != "stopped"
        if kind not in (None, "unknown"):
            title = say("ending.because", ending=title, kind=kind_title(kind))
        return Ending(title, reason, bad=bad, more=failure_lines(record), remedies=remedies)
    title = say("ending.failed_rank", rank=failure.rank)
    if kind not in (None, "unknown"):
        title = say("ending.because", ending=title, kind=kind_title(kind))
    return Ending(
        title=title,
        remedies=remedies,
        sentence=retold(failure.sentence),
        bad=True,
        traceback=None if failure.user_error else failure.traceback,
        more=failure_lines(record),
    )
