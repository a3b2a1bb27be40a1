"""Numbers as text: always with their unit, in figures a person can compare, a dash when missing."""

from __future__ import annotations

from datetime import datetime

from ringside.words import say

DASH = "–"
_MINUS = "\N{MINUS SIGN}"


def seconds(value: float | None) -> str:
    """`0.42 s`, `38.2 s`, `3 m 52 s`, `2 h 05 m`."""
    if value is None:
        return DASH
    if value < 10:
        return f"{value:.2f} s"
    if value < 100:
        return f"{value:.1f} s"
    if value < 3600:
        return f"{int(value) // 60} m {int(value) % 60:02d} s"
    return f"{int(value) // 3600} h {int(value) % 3600 // 60:02d} m"


def whole_seconds(value: float | None) -> str:
    """An estimate, without false precision: `38 s`, `3 m 52 s`."""
    return f"{value:.0f} s" if value is not None and value < 100 else seconds(value)


def milliseconds(value: float | None) -> str:
    """`40.8 ms`; from a second on in seconds."""
    if value is None:
        return DASH
    return f"{value:.1f} ms" if value < 1000 else f"{value / 1000:.2f} s"


def count(value: float | None) -> str:
    """`480,000`; below a hundred with one decimal unless it is whole."""
    if value is None:
        return DASH
    return f"{value:,.1f}" if value < 100 and value != int(value) else f"{value:,.0f}"


def ratio(value: float | None) -> str:
    """A speed-up: `1.97×`."""
    return DASH if value is None else f"{value:.2f}×"


def percent(value: float | None) -> str:
    """A ratio from 0 to 1 as `58 %`; small ones with a decimal."""
    if value is None:
        return DASH
    return f"{value * 100:.1f} %" if abs(value) < 0.1 else f"{value * 100:.0f} %"


def score(value: float | None) -> str:
    """AUC, F1, loss: three decimals."""
    return DASH if value is None else f"{value:.3f}"


def delta(value: float | None) -> str:
    """A difference with its sign: `+0.004`, `−0.021`, `±0.000`."""
    if value is None:
        return DASH
    if abs(value) < 0.0005:
        return "±0.000"
    return f"{'+' if value > 0 else _MINUS}{abs(value):.3f}"


def change(value: float | None) -> str:
    """A relative change with its sign: `+4.0 %`, `−3.8 %`."""
    if value is None:
        return DASH
    return f"{'+' if value >= 0 else _MINUS}{abs(value) * 100:.1f} %"


def size(value: float | None) -> str:
    """Bytes as `94.9 MB`."""
    if value is None:
        return DASH
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def clock(t: float | None) -> str:
    """Local day and time: `29 Nov, 17:41`."""
    return DASH if t is None else say("figures.clock", at=datetime.fromtimestamp(t))


def since(t: float | None, now: float) -> str:
    """How long ago, coarse: `1 s`, `4 min`, `3 h`, `2 days`."""
    if t is None:
        return DASH
    gone = max(0, int(now - t))
    for limit, step, unit in ((100, 1, "s"), (6000, 60, "min"), (172800, 3600, "h")):
        if gone < limit:
            return f"{gone // step} {unit}"
    return say("figures.days", n=gone // 86400)
