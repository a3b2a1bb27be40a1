"""The scaling chart of a comparison."""

from __future__ import annotations

from app.views.charts.figure import Figure
from app.views.charts.scaling import ScalingLine, ScalingPoint, scaling_lines
from app.views.naming import short_name
from ringside.compare import Comparison, ScalingSeries
from ringside.words import say


def scaling_figure(comparison: Comparison) -> Figure | None:
    """Every strategy as a line of its own; None where no run has a speed-up."""
    lines = [
        ScalingLine(_label(series, comparison.scaling), number, _points(series))
        for number, series in enumerate(comparison.scaling)
    ]
    return scaling_lines(lines)


def _points(series: ScalingSeries) -> tuple[ScalingPoint, ...]:
    return tuple(
        ScalingPoint(run.num_devices, run.speedup, short_name(run.id)) for run in series.runs
    )


def _label(series: ScalingSeries, every: tuple[ScalingSeries, ...]) -> str:
    """Preset, precision and sense; the baseline too where that alone tells two lines apart."""
    words = (series.preset, say(f"precision.{series.mixed_precision}"))
    label = f"{' '.join(words)}, {say(f'scaling.{series.scaling}')}"
    same = [
        one for one in every
        if (one.preset, one.mixed_precision, one.scaling)
        == (series.preset, series.mixed_precision, series.scaling)
    ]  # fmt: skip
    if len(same) == 1:
        return label
    return say("compare.of_baseline", label=label, baseline=short_name(series.baseline_id))
