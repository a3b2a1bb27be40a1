"""One run as the page shows it: texts and points, made from the record and its baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from app.views import figures
from app.views.classes import ClassTable, class_tables
from app.views.counts import EARLY_STOP, epoch_lines, step_lines
from app.views.ending import failure_lines
from app.views.setup import setup_lines, word_for
from app.views.step import Step, step_view
from app.views.traces import trace_lines
from app.views.trials import checkpoint_of
from ringside.checkpoints import CheckpointName, read_about
from ringside.errors import RunDirError
from ringside.run import EpochRow, RunRecord, require_spec
from ringside.rundir import RunDir
from ringside.speedup import SpeedUp, speedup
from ringside.words import say

MAX_POINTS = 1000

Point = tuple[float, float, str]
T = TypeVar("T")


@dataclass(frozen=True)
class Tile:
    """One large number; `tone` is good, bad or plain."""

    value: str
    label: str
    tone: str = "plain"


@dataclass(frozen=True)
class Ending:
    """Why a run ended badly or early: a sentence, perhaps a rank and its traceback."""

    title: str
    sentence: str
    bad: bool
    traceback: str | None = None
    more: tuple[str, ...] = ()


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
    loss_points: tuple[Point, ...]
    score_points: tuple[Point, ...]
    ending: Ending | None
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    setup: tuple[tuple[str, str], ...]
    baseline_id: str | None
    classes: tuple[ClassTable, ...] = ()
    epoch_lines: tuple[str, ...] = ()
    step_lines: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None

    @property
    def can_profile(self) -> bool:
        """Whether steps are still to come that could be recorded."""
        return self.state == "running"

    @property
    def stoppable(self) -> bool:
        """Whether Stop makes sense now."""
        return self.state in ("launching", "running")


def run_view(record: RunRecord, baseline: RunRecord | None) -> RunView:
    """The view of a run; raises RunDirError when its spec cannot be read."""
    spec = require_spec(record)
    gain = speedup(record, baseline)
    return RunView(
        id=record.id,
        name=record.name,
        state=record.state,
        facts=(spec.preset, spec.model, spec.data.label, progress(record)),
        tiles=tuple(_tiles(record, gain)),
        epochs=tuple(_epoch_line(row, gain) for row in record.epochs),
        step=step_view(record.windows),
        loss_points=tuple(_loss_points(record)),
        score_points=tuple(_score_points(record)),
        ending=_ending(record),
        warnings=tuple(w.message for w in record.warnings if w.code not in ("data", EARLY_STOP)),
        notes=tuple(w.message for w in record.warnings if w.code == "data"),
        setup=tuple(setup_lines(record)),
        baseline_id=gain.baseline_id,
        classes=class_tables(record),
        epoch_lines=epoch_lines(record),
        step_lines=(*step_lines(record), *trace_lines(record)),
        checkpoint=_checkpoint(record),
    )


def progress(record: RunRecord) -> str:
    """`epoch 4 of 10`, or what it does before the first epoch."""
    total = require_spec(record).epochs
    if record.final:
        done = record.epochs[-1].epoch if record.epochs else 0
        return say("run.epochs_done", n=done, total=total)
    if record.epoch:
        return say("run.epoch_of", n=record.epoch, total=total)
    return word_for("phase", record.phase or "waiting")


def sign_of_life(record: RunRecord, now: float) -> str:
    """`last sign of life 1 s ago` while it lives, when it ended afterwards."""
    if record.final:
        return say("run.ended", when=figures.clock(record.finished_t or record.last_event_t))
    started = record.owner.started if record.owner else record.created_t
    return say("run.alive", ago=figures.since(record.last_event_t or started, now))


def with_time_left(view: RunView, record: RunRecord, now: float) -> RunView:
    """The view with the tile that changes by the second: what is left, or what it took."""
    if record.final:
        tile = Tile(figures.seconds(_total_time_s(record)), say("tile.total"))
    else:
        tile = Tile(figures.whole_seconds(record.time_left_s(now)), say("tile.left"))
    return replace(view, tiles=(*view.tiles, tile))


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
    f1 = scored.f1_macro if scored else None
    yield Tile(figures.score(f1), say("tile.f1"))


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
    return Tile(figures.count(record.windows[-1].samples_per_s), say("tile.rate_now"))


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


def _epoch_line(row: EpochRow, gain: SpeedUp) -> tuple[str, ...]:
    """The cells of one row of the epoch table."""
    base = gain.baseline_samples_per_s
    speed = figures.ratio(row.samples_per_s / base) if base else figures.DASH
    speed = say("run.profiled") if row.profiled else speed
    return (
        str(row.epoch),
        figures.seconds(row.whole_time_s),
        figures.count(row.samples_per_s),
        say("run.warm_up") if row.epoch == 1 else speed,
        figures.score(row.train_loss),
        figures.score(row.auc_macro),
        figures.score(row.f1_macro),
    )


def _loss_points(record: RunRecord) -> Iterator[Point]:
    per_epoch = record.started.steps_per_epoch if record.started else 0
    if per_epoch:
        train = [
            (window.step / per_epoch, window.train_loss, say("curve.train_loss"))
            for window in record.windows
            if window.train_loss is not None
        ]
        yield from thinned(train, MAX_POINTS // 2)
    yield from _per_epoch(record.epochs, "val_loss", say("curve.val_loss"))


def _score_points(record: RunRecord) -> Iterator[Point]:
    yield from _per_epoch(record.epochs, "auc_macro", say("curve.auc"))
    yield from _per_epoch(record.epochs, "f1_macro", say("curve.f1"))


def _per_epoch(rows: Iterable[EpochRow], name: str, series: str) -> list[Point]:
    values = [(row.epoch, getattr(row, name)) for row in rows]
    points = [(float(epoch), value, series) for epoch, value in values if value is not None]
    return thinned(points, MAX_POINTS // 2)


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


def _ending(record: RunRecord) -> Ending | None:
    if not record.final or record.state == "completed":
        return None
    failure = record.failure
    reason = record.exit.reason if record.exit else say("run.owner_gone")
    if record.state != "failed" or failure is None:
        title, bad = say(f"ending.{record.state}"), record.state != "stopped"
        return Ending(title, reason, bad=bad, more=failure_lines(record))
    return Ending(
        title=say("ending.failed_rank", rank=failure.rank),
        sentence=failure.sentence,
        bad=True,
        traceback=None if failure.user_error else failure.traceback,
        more=failure_lines(record),
    )
