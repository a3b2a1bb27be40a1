"""How busy the devices of a run are: one row a GPU, and one a rank, over the last minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.views import figures
from ringside.samples import Sample, Series, reason_told, series_of, throttled
from ringside.words import say

NUM_SAMPLES = 150
"""At one in two seconds these are five minutes."""

MAX_POINTS = 60
GPU_CELLS = (
    ("utilisation_ratio",), ("memory_used_bytes",), ("power_w",),
    ("pcie_rx_bytes_per_s", "pcie_tx_bytes_per_s"),
    ("nvlink_rx_bytes_per_s", "nvlink_tx_bytes_per_s"),
)  # fmt: skip
RANK_CELLS = (("cpu_cores",), ("memory_bytes",))


@dataclass(frozen=True)
class Spark:
    """One small line: points in shares of its box, x and y from 0 to 1, and the value in words."""

    label: str
    value: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class StripRow:
    """One device: its name, its lines, and what holds its clocks down."""

    name: str
    sparks: tuple[Spark, ...]
    note: str = ""


def strip_rows(
    samples: Sequence[Sample], names: Mapping[int, str] | None = None, *, is_over: bool = False
) -> tuple[StripRow, ...]:
    """GPUs first, then ranks; empty before the first sample. `names` are those of GPUs.

    The last minutes and the newest values; of a run that is over the whole of it, and the highest.
    """
    newest = samples if is_over else samples[-NUM_SAMPLES:]
    found = {(one.of, one.index, one.name): one for one in series_of(newest, MAX_POINTS)}
    held = throttled(newest)
    rows = []
    for of, cells in (("gpu", GPU_CELLS), ("rank", RANK_CELLS)):
        for index in sorted({number for kind, number, _ in found if kind == of}):
            lines = (
                [found[of, index, name] for name in cell if (of, index, name) in found]
                for cell in cells
            )
            sparks = tuple(_spark(line, is_over=is_over) for line in lines if line)
            note = _held_down(held.get(index, {})) if of == "gpu" else ""
            rows.append(StripRow(_name(of, index, names or {}), sparks, note))
    return tuple(rows)


def _name(of: str, index: int, names: Mapping[int, str]) -> str:
    if of == "rank":
        return say("log.rank", rank=index)
    short = names.get(index, "").removeprefix("NVIDIA ")
    return f"GPU {index} · {short}" if short else f"GPU {index}"


def _spark(lines: Sequence[Series], *, is_over: bool) -> Spark:
    """One line, or received and sent as one cell whose line is their sum."""
    first = lines[0]
    name = first.name.partition("_rx_")[0].partition("_tx_")[0]
    label = say(f"strip.{name}")
    values = (line.max if is_over else line.last for line in lines)
    value = " ".join(
        _value(*pair, with_arrow=len(lines) > 1) for pair in zip(lines, values, strict=True)
    )
    if is_over:
        value = say("strip.highest", value=value)
    points = first.points
    if len(lines) > 1 and [t for t, _ in points] == [t for t, _ in lines[1].points]:
        points = tuple((t, a + b) for (t, a), (_, b) in zip(points, lines[1].points, strict=True))
    top = 1.0 if first.name == "utilisation_ratio" else first.limit
    return Spark(label, value, tuple(_placed(points, top)))


def _placed(
    points: Sequence[tuple[float, float]], top: float | None
) -> Iterator[tuple[float, float]]:
    """Against the highest value there can be, else against the highest there was."""
    begin, span = points[0][0], points[-1][0] - points[0][0] or 1.0
    highest = top or max(value for _, value in points) or 1.0
    for t, value in points:
        yield (t - begin) / span, min(1.0, max(0.0, value / highest))


def _value(line: Series, value: float, *, with_arrow: bool) -> str:
    text = {
        "utilisation_ratio": figures.percent,
        "power_w": lambda watt: f"{watt:.0f} W",
        "cpu_cores": lambda cores: say("strip.cores", n=f"{cores:.1f}"),
    }.get(line.name, figures.size)(value)
    if line.name.startswith("memory") and line.limit:
        text = say("strip.of", value=text, limit=figures.size(line.limit))
    if line.name.endswith("_per_s"):
        text = f"{'↓' if '_rx_' in line.name else '↑'} {text}/s" if with_arrow else f"{text}/s"
        text = text.replace(" ", "\N{NO-BREAK SPACE}")  # Of two directions each stays in one piece.
    return text


def _held_down(shares: Mapping[str, float]) -> str:
    words: Iterable[str] = (
        say("strip.held", reason=reason_told(reason), share=figures.percent(share))
        for reason, share in sorted(shares.items(), key=lambda item: -item[1])
    )
    return "; ".join(words)
