"""How fast gradients cross, by message size: measured, with the model's buckets marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from app.views import figures
from app.views.charts import palette
from app.views.charts.figure import Figure
from ringside.measurements import Series, Sweep
from ringside.measurements.interpolation import interpolate_us
from ringside.trace.bandwidth import bus_bandwidth
from ringside.words import say

GIGA = 1e9
MAX_EXPERIMENTS = 4
HEIGHT = 220
ROOM_FOR_SIZES = 360
TICKS = tuple(16**n << 10 for n in range(1, 6))
"""16 KiB, 256 KiB, 4 MiB and so on."""

MIN_NUM_BYTES = 64 << 20
"""From here on a healthy range is meant: below, latency decides more and more."""


@dataclass(frozen=True)
class Healthy:
    """What the transport reaches where it is well, in bytes per second, and who says so."""

    low: float
    high: float
    transport: str
    source: str


def all_reduce_curve(
    sweep: Sweep, buckets: Sequence[int] = (), healthy: Healthy | None = None
) -> Figure | None:
    """Bus bandwidth over size on log axes; None when the sweep holds no all-reduce of float32.

    `buckets`: sizes in bytes of what this model sends; those outside the sweep are not marked.
    """
    base = base_series(sweep)
    if base is None:
        return None
    others = [
        s for s in sweep.series
        if s.environment and s.points and (s.operation, s.dtype) == (base.operation, base.dtype)
    ][:MAX_EXPERIMENTS]  # fmt: skip
    marks = _marks(base, buckets)
    return Figure(
        name="all-reduce",
        title=say("charts.all_reduce"),
        headline=_headline(base, marks, healthy),
        description=_description(base, healthy),
        columns=tuple(say(f"charts.{name}") for name in ("size", "time", "busbw")),
        rows=tuple(
            (figures.size(point.num_bytes), _microseconds(point.median_us),
             _rate(_busbw(base, point.num_bytes, point.median_us)))
            for point in base.points
        ),
        draw=partial(_draw, base, others, marks, healthy),
    )  # fmt: skip


def base_series(sweep: Sweep) -> Series | None:
    """All-reduce of float32 on the machine as it is."""
    return next(
        (s for s in sweep.series if s.points and not s.environment
         and (s.operation, s.dtype) == ("all_reduce", "fp32")),
        None,
    )  # fmt: skip


def _busbw(series: Series, num_bytes: int, us: float) -> float:
    """Bytes per second on the wire; nan where there is nothing to divide by."""
    found = bus_bandwidth(series.operation, num_bytes, series.num_ranks, us / 1e6)
    return float("nan") if found is None else found


def _marks(base: Series, buckets: Sequence[int]) -> list[tuple[int, float, float]]:
    """(bytes, microseconds, bus bandwidth) of each bucket that the sweep covers."""
    found = []
    for size in sorted(buckets):
        us = interpolate_us(base, size)
        if us is not None:
            found.append((size, us, _busbw(base, size, us)))
    return found


def _headline(
    base: Series, marks: Sequence[tuple[int, float, float]], healthy: Healthy | None
) -> str:
    large = [p for p in base.points if p.num_bytes >= MIN_NUM_BYTES] or base.points
    best = max(_busbw(base, p.num_bytes, p.median_us) for p in large)
    said = say("charts.link_reaches", rate=_rate(best))
    if marks:
        total = sum(us for _, us, _ in marks) / 1000
        said = say("charts.buckets_take", n=len(marks), ms=figures.milliseconds(total))
    if healthy is None or base.points[-1].num_bytes < MIN_NUM_BYTES:
        return said
    key = "below" if best < healthy.low else "above" if best > healthy.high else "within"
    where = say(f"charts.healthy_{key}", rate=_rate(best), low=_rate(healthy.low),
                high=_rate(healthy.high), transport=healthy.transport)  # fmt: skip
    return f"{said} {where}" if marks else where


def _description(base: Series, healthy: Healthy | None) -> str:
    first, last = base.points[0], base.points[-1]
    said = say(
        "charts.all_reduce_words", n=base.num_ranks, backend=base.backend,
        transport=base.transport or base.backend, low=figures.size(first.num_bytes),
        high=figures.size(last.num_bytes), low_time=_microseconds(first.median_us),
        high_time=_microseconds(last.median_us),
    )  # fmt: skip
    return f"{said} {healthy.source}" if healthy else said


def _microseconds(us: float) -> str:
    return f"{us:.0f} µs" if us < 1000 else figures.milliseconds(us / 1000)


def _rate(bytes_per_s: float) -> str:
    value = bytes_per_s / GIGA
    return f"{value:.0f} GB/s" if value >= 10 else f"{value:.2g} GB/s"


def _points(series: Series) -> list[dict[str, Any]]:
    rates = [_busbw(series, p.num_bytes, p.median_us) for p in series.points]
    return [
        {"bytes": p.num_bytes, "rate": rate / GIGA}
        for p, rate in zip(series.points, rates, strict=True)
        if rate > 0
    ]


def _draw(
    base: Series,
    others: Sequence[Series],
    marks: Sequence[tuple[int, float, float]],
    healthy: Healthy | None,
    width: int,
) -> Any:
    import altair as alt

    sizes = [p.num_bytes for p in base.points]
    rows = _points(base)
    rates = [row["rate"] for series in (base, *others) for row in _points(series)]
    rates += [healthy.low / GIGA, healthy.high / GIGA] if healthy else []
    low, high = min(rates) / 1.3, max(rates) * 1.9
    x = alt.X(
        "bytes:Q",
        title=say("charts.size"),
        scale=alt.Scale(type="log", domain=[sizes[0], sizes[-1]], nice=False),
        axis=alt.Axis(grid=False, values=list(TICKS), labelExpr=_SIZE_LABEL),
    )
    powers = [10.0**n for n in range(-4, 5)]
    ticks = [power for power in powers if low <= power <= high]
    if len(ticks) < 2:  # all rates within one decade
        between = (round(part * power, 5) for power in powers for part in (1, 1.5, 2, 3, 5, 7))
        ticks = [tick for tick in between if low <= tick <= high]
    y = alt.Y("rate:Q", title=say("charts.busbw"), axis=alt.Axis(values=ticks, format="~f"),
              scale=alt.Scale(type="log", domain=[low, high], nice=False))  # fmt: skip
    layers = _band(alt, healthy, sizes, x, y)
    for series in others:
        layers += _experiment(alt, series, x, y)
    line = alt.Chart(alt.InlineData(values=rows)).encode(x=x, y=y)
    layers += [
        line.mark_line(color=palette.TRANSFER, strokeWidth=2.5),
        line.mark_point(color=palette.TRANSFER, filled=True, size=26, opacity=1),
        *_bucket_marks(alt, marks, x, y, width - 60),
    ]
    return alt.layer(*layers).properties(width=width - 60, height=HEIGHT)


_SIZE_LABEL = (
    "datum.value >= 1048576 ? format(datum.value / 1048576, '~r') + ' MiB' : "
    "format(datum.value / 1024, '~r') + ' KiB'"
)


def _band(alt: Any, healthy: Healthy | None, sizes: Sequence[int], x: Any, y: Any) -> list[Any]:
    if healthy is None or sizes[-1] < MIN_NUM_BYTES:
        return []
    row = {
        "bytes": max(sizes[0], MIN_NUM_BYTES), "to": sizes[-1], "rate": healthy.low / GIGA,
        "high": healthy.high / GIGA, "label": say("charts.healthy", transport=healthy.transport),
    }  # fmt: skip
    base = alt.Chart(alt.InlineData(values=[row])).encode(x=x, y=y)
    text = base.encode(x=alt.X("to:Q"), y=alt.Y("high:Q"), text="label:N")
    return [
        base.mark_rect(color=palette.ACCENT, opacity=0.16).encode(x2="to:Q", y2="high:Q"),
        text.mark_text(align="right", baseline="bottom", dx=-2, dy=-3, color=palette.ACCENT),
    ]


def _experiment(alt: Any, series: Series, x: Any, y: Any) -> list[Any]:
    """A dashed line with the variables that make it."""
    points = _points(series)
    base = alt.Chart(alt.InlineData(values=points)).encode(x=x, y=y)
    label = " ".join(
        f"{name.removeprefix('NCCL_')}={value}" for name, value in series.environment.items()
    )
    named = alt.Chart(alt.InlineData(values=[{**row, "label": label} for row in points[:1]]))
    text = named.mark_text(align="left", dx=6, dy=12, color=palette.SOFT, fontSize=10.5, limit=200)
    return [
        base.mark_line(color=palette.SOFT, strokeWidth=1.2, strokeDash=[4, 3]),
        text.encode(x=x, y=y, text="label:N"),
    ]


def _bucket_marks(
    alt: Any, marks: Sequence[tuple[int, float, float]], x: Any, y: Any, width: int
) -> list[Any]:
    """Dots on the line; their words stand below it at the right, where it never comes."""
    if not marks:
        return []
    rows = [{"bytes": size, "rate": rate / GIGA} for size, _, rate in marks]
    words = alt.Chart(alt.InlineData(values=[{"label": _bucket_label(marks, width)}]))
    return [
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(color=palette.INK, filled=True, size=70, opacity=1)
        .encode(x=x, y=y),
        words.mark_text(align="right", fontWeight=600).encode(
            x=alt.value(width), y=alt.value(HEIGHT - 12), text="label:N"
        ),
    ]


def _bucket_label(marks: Sequence[tuple[int, float, float]], width: int) -> str:
    if width < ROOM_FOR_SIZES:
        return say("charts.buckets_only", n=len(marks))
    low, high = figures.size(marks[0][0]), figures.size(marks[-1][0])
    if len(marks) == 1:
        return say("charts.bucket", size=high)
    return say("charts.buckets", n=len(marks), low=low, high=high)
