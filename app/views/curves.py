"""Curves of several runs over each other: over what, smoothed or not, thinned for a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.views.naming import short_name
from app.views.run import thinned
from ringside.compare import CURVES, CurveMetric, CurvePoint, curve, smoothed
from ringside.run import RunRecord

XAxis = Literal["epoch", "step", "time", "samples"]
X_AXES: tuple[XAxis, ...] = ("epoch", "step", "time", "samples")
LOSSES = ("train_loss", "val_loss")
MAX_POINTS = 400
"""Of one line; a plot is some 600 pixels wide."""

MAX_SMOOTHING = 0.95
MINUTES_FROM_S = 600.0

Place = tuple[float, float]


@dataclass(frozen=True)
class CurveOptions:
    """How curves are shown; `smoothing` from 0 is the weight of what was before."""

    x: XAxis = "epoch"
    log: bool = False
    smoothing: float = 0.0


@dataclass(frozen=True)
class Line:
    """One run's curve: as it is, and smoothed (the same without smoothing)."""

    name: str
    number: int
    raw: tuple[Place, ...]
    line: tuple[Place, ...]


@dataclass(frozen=True)
class CurveSet:
    """One metric of all runs; `is_log` only where every value is above zero."""

    metric: CurveMetric
    x: XAxis
    x_unit: str
    is_log: bool
    is_smoothed: bool
    lines: tuple[Line, ...]


def read_options(x: object, log: object, smoothing: object) -> CurveOptions:
    """What fields say, or their defaults where they say nothing of sense."""
    known: XAxis = next((axis for axis in X_AXES if axis == x), "epoch")
    weight = float(smoothing) if isinstance(smoothing, int | float) else 0.0
    weight = min(max(weight, 0.0), MAX_SMOOTHING) if weight == weight else 0.0  # not for NaN
    return CurveOptions(known, log is True, weight)


def curve_sets(records: Sequence[RunRecord], options: CurveOptions) -> tuple[CurveSet, ...]:
    """Training loss, validation loss, AUC and F1 of all runs, those with any value."""
    found = (_curve_set(records, metric, options) for metric in CURVES)
    return tuple(one for one in found if any(line.raw for line in one.lines))


def _curve_set(
    records: Sequence[RunRecord], metric: CurveMetric, options: CurveOptions
) -> CurveSet:
    curves = [curve(record, metric).points for record in records]
    longest = max((points[-1].time_s for points in curves if points), default=0.0)
    in_minutes = options.x == "time" and longest >= MINUTES_FROM_S
    # Scores of a few epochs are no noise to be smoothed away; losses of windows are.
    weight = options.smoothing if metric == "train_loss" else 0.0
    lines = tuple(
        _line(record, number, points, options.x, weight, 60.0 if in_minutes else 1.0)
        for number, (record, points) in enumerate(zip(records, curves, strict=True))
    )
    positive = all(y > 0 for line in lines for _, y in line.raw)
    unit = ("min" if in_minutes else "s") if options.x == "time" else ""
    is_log = options.log and metric in LOSSES and positive
    return CurveSet(metric, options.x, unit, is_log, weight > 0, lines)


def _line(
    record: RunRecord,
    number: int,
    points: Sequence[CurvePoint],
    x: XAxis,
    weight: float,
    divisor: float,
) -> Line:
    places = [_x(point, x) / divisor for point in points]
    values = [point.value for point in points]
    raw = list(zip(places, values, strict=True))
    line = list(zip(places, smoothed(values, weight), strict=True)) if weight else raw
    return Line(
        short_name(record.id), number, tuple(thinned(raw, MAX_POINTS)),
        tuple(thinned(line, MAX_POINTS)),
    )  # fmt: skip


def _x(point: CurvePoint, x: XAxis) -> float:
    names = {"epoch": "epoch", "step": "step", "time": "time_s", "samples": "num_samples"}
    return float(getattr(point, names[x]))
