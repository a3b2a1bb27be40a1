"""Runs side by side: one row a run, every number with its unit, and why some have none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.views import figures
from app.views.gates import score_delta
from app.views.naming import short_name
from app.views.run import scaling
from ringside.compare import ComparedRun, Comparison
from ringside.errors import RingsideError
from ringside.scores import Interval, Metric
from ringside.words import say

MIN_RUNS, MAX_RUNS = 2, 8

COLUMNS = (
    "run", "preset", "devices", "precision", "epoch_time", "rate", "speedup", "efficiency",
    "auc", "f1", "map", "total", "device_hours",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One run: its cells by column, a second line under some of them, and its own remarks."""

    id: str
    name: str
    state: str
    cells: dict[str, str]
    under: dict[str, str]
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Bar:
    """One bar: `share` of the longest from 0 to 1; None when there is no value."""

    label: str
    text: str
    share: float | None


@dataclass(frozen=True)
class Chart:
    """Bars with one meaning and one colour."""

    title: str
    aside: str
    colour: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class CompareView:
    """A finished comparison."""

    rows: tuple[Row, ...]
    charts: tuple[Chart, ...]
    precision: tuple[str, ...]


def choose(ids: Sequence[str]) -> list[str]:
    """The chosen ids without repeats, in order; raises RingsideError outside 2 to 8."""
    chosen = list(dict.fromkeys(ids))
    if not MIN_RUNS <= len(chosen) <= MAX_RUNS:
        raise RingsideError(say("compare.how_many", low=MIN_RUNS, high=MAX_RUNS))
    return chosen


def view_of(result: Comparison) -> CompareView:
    """The view of a finished comparison."""
    factors = (
        say("compare.precision", precision=say(f"precision.{name}"), gain=figures.ratio(value))
        for name, value in result.precision_factor.items()
    )
    return CompareView(
        rows=tuple(_row(run, is_first=run.id == result.reference) for run in result.runs),
        charts=tuple(_charts(result.runs)),
        precision=tuple(factors),
    )


def _row(run: ComparedRun, *, is_first: bool) -> Row:
    gain = run.speedup
    cells: dict[str, Any] = {
        "run": short_name(run.id),
        "preset": run.preset,
        "devices": figures.count(run.num_devices),
        "precision": say(f"precision.{run.mixed_precision}"),
        "epoch_time": figures.seconds(run.epoch_time_s),
        "rate": figures.count(run.samples_per_s),
        "speedup": figures.ratio(gain.value),
        "efficiency": figures.percent(gain.efficiency_ratio),
        "auc": figures.score(run.auc_macro),
        "f1": figures.score(run.f1_macro),
        "map": figures.score(run.map_macro),
        "total": figures.seconds(run.wall_time_s),
        "device_hours": _hours(run.device_hours),
    }
    return Row(
        id=run.id,
        name=short_name(run.id),
        state=run.state,
        cells=cells,
        under=dict(_under(run, is_first)),
        remarks=tuple(_remarks(run)),
    )


def _under(run: ComparedRun, is_first: bool) -> Iterator[tuple[str, str]]:
    """Second lines: the sense of a speed-up, the difference of a score."""
    if run.speedup.value is not None and run.speedup.baseline_id:
        baseline = short_name(run.speedup.baseline_id)
        yield "speedup", say("compare.against", scaling=scaling(run.speedup), baseline=baseline)
    if is_first:
        yield "run", say("compare.reference")
    if run.wall_time_until in ("ended", "now"):
        yield "total", say(f"compare.cost_{run.wall_time_until}")
    metrics: tuple[Metric, ...] = ("auc_macro", "f1_macro", "map_macro")
    for metric in metrics:
        delta, interval = score_delta(run, metric)
        if delta is not None:
            limits = f"\n{limits_of(interval)}" if interval else ""
            yield metric.removesuffix("_macro"), figures.delta(delta) + limits


def limits_of(interval: Interval) -> str:
    """The 95 % limits of a difference."""
    return say("compare.limits", low=figures.delta(interval.low), high=figures.delta(interval.high))


def _remarks(run: ComparedRun) -> Iterator[str]:
    if run.not_comparable:
        yield say("compare.not_comparable", why="; ".join(run.not_comparable))
    if run.speed_not_comparable:
        why = "; ".join(run.speed_not_comparable)
        yield say("compare.speed_not_comparable", why=why)
    if run.speedup.value is None and run.speedup.reason:
        yield say("compare.no_speedup", why=run.speedup.reason)


def _hours(value: float | None) -> str:
    if value is None:
        return figures.DASH
    return f"{value:.2f} h" if value >= 1 else f"{value * 60:.1f} min"


def _charts(runs: Sequence[ComparedRun]) -> Iterator[Chart]:
    for key, name, colour, text in (
        ("chart.epoch_time", "epoch_time_s", "compute", figures.seconds),
        ("chart.auc", "auc_macro", "accent", figures.score),
        ("chart.f1", "f1_macro", "data", figures.score),
    ):
        values = [getattr(run, name) for run in runs]
        # A score's bar is its share of 1, so that a small difference looks small.
        longest = 1.0 if text is figures.score else max((v for v in values if v), default=1.0)
        bars = (
            Bar(short_name(run.id), text(value), None if value is None else value / longest)
            for run, value in zip(runs, values, strict=True)
        )
        yield Chart(say(key), say(f"{key}_aside"), colour, tuple(bars))
