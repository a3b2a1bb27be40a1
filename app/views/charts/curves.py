"""Curves of several runs over each other, each with a colour and a pattern of its own."""

from __future__ import annotations

from functools import partial
from typing import Any

from app.views import figures
from app.views.charts import palette
from app.views.charts.figure import Figure
from app.views.curves import LOSSES, CurveSet, Line
from ringside.words import say, say_few

HEIGHT = 210


def curves_figure(curves: CurveSet) -> Figure | None:
    """All lines of one metric; None without a value."""
    lines = [line for line in curves.lines if line.line]
    if not lines:
        return None
    is_loss = curves.metric in LOSSES
    return Figure(
        name=f"curve-{curves.metric.replace('_', '-')}",
        title=say(f"compare.curve_{curves.metric}"),
        headline=_headline(lines, is_loss),
        description=". ".join(_in_words(line) for line in lines),
        columns=tuple(say(f"compare.curve_{name}") for name in ("run", "first", "best", "last")),
        rows=tuple(_row(line, is_loss) for line in lines),
        draw=partial(_draw, curves, lines),
    )


def _headline(lines: list[Line], is_loss: bool) -> str:
    """Who ends best; runs that end at the same figure as it is shown share the place."""
    ends = {line.name: line.line[-1][1] for line in lines}
    value = figures.score((min if is_loss else max)(ends.values()))
    best = [name for name, end in ends.items() if figures.score(end) == value]
    if len(best) == len(lines):
        return say("compare.curve_equal", value=value)
    direction = "lowest" if is_loss else "highest"
    if len(best) > 1:
        return say(f"compare.curve_{direction}_tied", runs=say_few(best), value=value)
    return say(f"compare.curve_{direction}", run=best[0], value=value)


def x_title(curves: CurveSet) -> str:
    """What the curves stand over, with its unit."""
    return say(f"compare.x_{curves.x}", unit=curves.x_unit)


def y_title(curves: CurveSet) -> str:
    """The metric; that it is smoothed, or on a logarithmic axis, is said too."""
    name = say(f"compare.curve_{curves.metric}")
    name = say("compare.is_smoothed", name=name) if curves.is_smoothed else name
    return say("compare.on_log", name=name) if curves.is_log else name


def _row(line: Line, is_loss: bool) -> tuple[str, ...]:
    values = [y for _, y in line.raw]
    best = (min if is_loss else max)(values)
    return (line.name, *map(figures.score, (values[0], best, values[-1])))


def _in_words(line: Line) -> str:
    first, last = line.line[0][1], line.line[-1][1]
    return f"{line.name}: {figures.score(first)} → {figures.score(last)}"


def _draw(curves: CurveSet, lines: list[Line], width: int) -> Any:
    import altair as alt

    x = alt.X("x:Q", title=x_title(curves), axis=alt.Axis(grid=False, tickCount=6, format="~s"),
              scale=alt.Scale(nice=False, zero=False))  # fmt: skip
    y = alt.Y("y:Q", title=y_title(curves), axis=alt.Axis(tickCount=5),
              scale=alt.Scale(type="log" if curves.is_log else "linear", zero=False,
                              **_domain_of_one_value(lines)))  # fmt: skip
    names = [line.name for line in lines]
    colours = [palette.RUNS[line.number % len(palette.RUNS)] for line in lines]
    dashes = [palette.RUN_DASHES[line.number % len(palette.RUNS)] for line in lines]
    columns = 4 if width > 400 else 2
    legend = alt.Legend(
        symbolType="stroke", symbolSize=300, columns=columns, symbolStrokeWidth=2.5,
        symbolOpacity=1,  # else that of the pale layer
    )  # fmt: skip
    colour = alt.Color("run:N", scale=alt.Scale(domain=names, range=colours), legend=legend)
    dash = alt.StrokeDash("run:N", scale=alt.Scale(domain=names, range=dashes), legend=legend)
    layers = []
    if curves.is_smoothed:
        raw = alt.Chart(alt.InlineData(values=_values(lines, smooth=False)))
        layers.append(
            raw.mark_line(strokeWidth=1, opacity=0.28).encode(
                x=x, y=y, color=colour, detail="run:N"
            )
        )
    main = alt.Chart(alt.InlineData(values=_values(lines, smooth=True)))
    few = max(len(line.line) for line in lines) <= 40
    point = alt.OverlayMarkDef(size=26, filled=True) if few else False
    layers.append(
        main.mark_line(strokeWidth=2, point=point).encode(
            x=x, y=y, color=colour, strokeDash=dash, order="x:Q"
        )
    )
    return alt.layer(*layers).properties(width=width - 70, height=HEIGHT)


def _domain_of_one_value(lines: list[Line]) -> dict[str, list[float]]:
    """A tenth above and below a value that all points share.

    Vega gives a domain without extent one tick and rounds its label to a whole number.
    """
    values = {y for line in lines for _, y in (*line.raw, *line.line)}
    if len(values) > 1:
        return {}
    (value,) = values
    margin = abs(value) / 10 or 1.0
    return {"domain": [value - margin, value + margin]}


def _values(lines: list[Line], *, smooth: bool) -> list[dict[str, Any]]:
    return [
        {"x": x, "y": y, "run": line.name}
        for line in lines
        for x, y in (line.line if smooth else line.raw)
    ]
