"""Speed-up over the number of devices: measured, predicted, and what would be perfect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.views import figures
from app.views.charts import palette
from app.views.charts.figure import Figure
from ringside.words import say


@dataclass(frozen=True)
class ScalingPoint:
    """A speed-up over one device; `run` names what was measured, None for a prediction."""

    num_devices: int
    speedup: float
    run: str | None = None


def scaling_curve(points: Sequence[ScalingPoint]) -> Figure | None:
    """All points; None when nothing was measured with several devices and nothing predicted."""
    many = sorted(
        (p for p in points if p.num_devices > 1), key=lambda p: (p.num_devices, p.run is None)
    )
    if not many:
        return None
    measured = [p for p in many if p.run]
    top = max(measured or many, key=lambda p: (p.num_devices, p.speedup))
    key = "charts.scales" if top.run else "charts.scales_predicted"
    return Figure(
        name="scaling",
        title=say("charts.scaling"),
        headline=say(key, n=top.num_devices, gain=figures.ratio(top.speedup),
                     efficiency=figures.percent(top.speedup / top.num_devices)),
        description=". ".join(_in_words(p) for p in many),
        columns=tuple(say(f"charts.{name}") for name in ("devices", "speedup", "source")),
        rows=tuple(
            (str(p.num_devices), figures.ratio(p.speedup), p.run or say("charts.predicted"))
            for p in many
        ),
        draw=partial(_draw, many),
    )  # fmt: skip


@dataclass(frozen=True)
class ScalingLine:
    """Measured points of one strategy; `number` is its place among the lines."""

    label: str
    number: int
    points: tuple[ScalingPoint, ...]


def scaling_lines(lines: Sequence[ScalingLine]) -> Figure | None:
    """Several strategies against the ideal line; None without a measured speed-up."""
    points = [(line, point) for line in lines for point in line.points]
    if not points:
        return None
    _, top = max(points, key=lambda pair: pair[1].speedup / pair[1].num_devices)
    columns = ("run", "strategy", "devices", "speedup", "efficiency")
    return Figure(
        name="scaling",
        title=say("charts.scaling"),
        headline=say("charts.scales_best", run=top.run, n=top.num_devices,
                     gain=figures.ratio(top.speedup),
                     efficiency=figures.percent(top.speedup / top.num_devices)),
        description=". ".join(f"{line.label}, {_in_words(point)}" for line, point in points),
        columns=tuple(say(f"charts.{name}") for name in columns),
        rows=tuple(
            (point.run or "", line.label, str(point.num_devices), figures.ratio(point.speedup),
             figures.percent(point.speedup / point.num_devices))
            for line, point in points
        ),
        draw=partial(_draw_lines, lines),
    )  # fmt: skip


def _draw_lines(lines: Sequence[ScalingLine], width: int) -> Any:
    import altair as alt

    every = [point for line in lines for point in line.points]
    x, y, layers = _frame(alt, every)
    names = [line.label for line in lines]
    ranges = [line.number % len(palette.RUNS) for line in lines]
    legend = alt.Legend(symbolType="stroke", symbolSize=300, columns=2 if width > 400 else 1)
    colour = alt.Color("line:N", legend=legend, scale=alt.Scale(
        domain=names, range=[palette.RUNS[n] for n in ranges]))  # fmt: skip
    dash = alt.StrokeDash("line:N", legend=legend, scale=alt.Scale(
        domain=names, range=[palette.RUN_DASHES[n] for n in ranges]))  # fmt: skip
    dots = [
        {"n": p.num_devices, "gain": p.speedup, "line": line.label,
         "label": f"{p.run} {figures.ratio(p.speedup)}"}
        for line in lines for p in line.points
    ]  # fmt: skip
    begins = [{"n": 1, "gain": 1.0, "line": name} for name in names]
    most = max(point.num_devices for point in every)
    named = alt.Chart(alt.InlineData(values=dots)).encode(x=x, y=y, color=colour)
    layers += [
        alt.Chart(alt.InlineData(values=[*begins, *dots]))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour, strokeDash=dash, order="n:Q"),
        named.mark_point(filled=True, size=70, opacity=1),
        # Below the line, and inside the frame.
        named.transform_filter(f"datum.n < {most}")
        .mark_text(align="left", dx=9, dy=12)
        .encode(text="label:N"),
        named.transform_filter(f"datum.n >= {most}")
        .mark_text(align="right", dx=2, dy=22)
        .encode(text="label:N"),
    ]
    return alt.layer(*layers).properties(width=width - 60, height=260)


def _in_words(point: ScalingPoint) -> str:
    kind = say("charts.measured" if point.run else "charts.predicted")
    return f"{point.num_devices} {say('charts.devices')}: {figures.ratio(point.speedup)} {kind}"


def _draw(points: Sequence[ScalingPoint], width: int) -> Any:
    import altair as alt

    x, y, layers = _frame(alt, points)
    for kind, colour in (("predicted", palette.OTHER), ("measured", palette.COMPUTE)):
        rows: list[dict[str, Any]] = [
            {"n": p.num_devices, "gain": p.speedup, "label": figures.ratio(p.speedup)}
            for p in points if (p.run is None) == (kind == "predicted")
        ]  # fmt: skip
        if rows:
            rows[-1]["label"] += f" {say(f'charts.{kind}')}"
        layers += _series(alt, rows, colour, kind, x, y)
    return alt.layer(*layers).properties(width=width - 60, height=220)


def _frame(alt: Any, points: Sequence[ScalingPoint]) -> tuple[Any, Any, list[Any]]:
    """Both axes, and the line of what would be perfect."""
    most = max(p.num_devices for p in points)
    highest = max(most, *(p.speedup for p in points))
    counts = (
        list(range(1, most + 1)) if most <= 8 else sorted({1, *(p.num_devices for p in points)})
    )
    x = alt.X("n:Q", title=say("charts.devices"), scale=alt.Scale(domain=[1, most], nice=False),
              axis=alt.Axis(grid=False, values=counts, format="d"))  # fmt: skip
    y = alt.Y("gain:Q", title=say("charts.speedup"), scale=alt.Scale(domain=[0, highest * 1.08]),
              axis=alt.Axis(tickCount=4))  # fmt: skip
    ideal = alt.Chart(alt.InlineData(values=[{"n": n, "gain": n} for n in (1, most)]))
    name = [{"n": most, "gain": most, "label": say("charts.perfect")}]
    return (
        x,
        y,
        [
            ideal.mark_line(color=palette.SOFT, strokeDash=[4, 3], strokeWidth=1.2).encode(
                x=x, y=y
            ),
            alt.Chart(alt.InlineData(values=name))
            .mark_text(align="right", dx=-14, dy=-9, color=palette.SOFT)
            .encode(x=x, y=y, text="label:N"),
        ],
    )


def _series(
    alt: Any, rows: list[dict[str, Any]], colour: str, kind: str, x: Any, y: Any
) -> list[Any]:
    if not rows:
        return []
    line = [{"n": 1, "gain": 1.0}, *rows]
    dots = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y)
    dash = [5, 4] if kind == "predicted" else [1, 0]
    down = -12 if kind == "predicted" else 26
    return [
        alt.Chart(alt.InlineData(values=line))
        .mark_line(color=colour, strokeDash=dash, strokeWidth=2)
        .encode(x=x, y=y),
        dots.mark_point(color=colour, filled=kind == "measured", size=80, opacity=1),
        dots.mark_text(align="right", dx=4, dy=down, fontWeight=600).encode(text="label:N"),
    ]
