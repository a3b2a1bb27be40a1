"""Curves of runs that still go on, as native plots: they stay in place when drawn anew."""

from __future__ import annotations

import math
from collections.abc import Iterable

import gradio as gr
import pandas as pd

from app.views.charts.curves import x_title, y_title
from app.views.charts.palette import RUNS
from app.views.curves import CurveSet
from ringside.words import say


def points_frame(points: Iterable[tuple[float, float, str]]) -> pd.DataFrame:
    """Points as a native plot wants them; an empty one needs the types."""
    frame = pd.DataFrame([*points], columns=["x", "y", "run"])
    return frame.astype({"x": float, "y": float, "run": str})


def plot_of(curves: CurveSet) -> gr.LinePlot:
    """Points, titles and colours of a native plot, which has no log scale of its own.

    It takes new colours only along with another title or legend (gradio 6.31), so each set of
    runs and each way of showing them has its own.
    """
    points: list[tuple[float, float, str]] = []
    colours = {}
    for line in curves.lines:
        colour = RUNS[line.number % len(RUNS)]
        colours[line.name] = colour
        points += [(x, _y(y, curves), line.name) for x, y in line.line]
        if curves.is_smoothed:
            raw = say("compare.curve_raw", run=line.name)
            colours[raw] = _pale(colour)
            points += [(x, _y(y, curves), raw) for x, y in line.raw]
    # Short: the heading above names the metric, and a long title is cut.
    ways = [(curves.is_log, "compare.log10"), (curves.is_smoothed, "compare.smooth")]
    how = ", ".join(say(key) for is_so, key in ways if is_so)
    return gr.LinePlot(
        points_frame(points),
        x_title=x_title(curves),
        y_title=how or y_title(curves),
        color_map=colours,
        colors_in_legend=[line.name for line in curves.lines],
    )


def _y(value: float, curves: CurveSet) -> float:
    return math.log10(value) if curves.is_log else value


def _pale(colour: str) -> str:
    """The colour at a third of its strength, on whatever is behind it."""
    return f"{colour}55"
