"""How near `ringside.estimate` came to the cells of `benchmarks/story.py`.

The bars are those of `estimate_report.py`: the windows of a cell, in five blocks one after the
other, are its repeats, and a prediction counts where they are steadier than half its bar. Noise of
the launch that calibrates a replay is an error of the replay here.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Iterator, Sequence

from estimate_report import (
    BARS,
    GAP_RATIO,
    MEMORY_BAR,
    REPEATS,
    Row,
    all_orders,
    orders,
    spread_ratio,
    verdict_of,
)
from story_cells import DATA_PARALLEL, ONE, REFERENCE, Line

Result = tuple[str, str, str]
"""A bar's name, `met`, `missed` or `nothing counted`, and the figures."""


def rows_of(lines: Iterable[Line]) -> list[Row]:
    """Every prediction that has a measurement; nn.DataParallel has none."""
    return list(itertools.chain.from_iterable(map(_rows, _predictable(lines))))


def results(lines: Sequence[Line]) -> Iterator[Result]:
    """Steps by kind of prediction, memory, and which preset comes first."""
    rows = rows_of(lines)
    for kind, bar in BARS.items():
        of_kind = [row for row in rows if row.kind == kind]
        errors = [abs(row.error_ratio) for row in of_kind if row.counts]
        counted = f"{len(errors)} of {len(of_kind)} counted"
        yield f"step by {_words(kind)}: {bar.words()}", verdict_of(errors, bar), (
            f"{_middle_and_worst(errors)}, {counted}"
        )  # fmt: skip
    errors = [
        abs(line.predicted_memory_bytes / line.memory_bytes - 1)
        for line in _predictable(lines)
        if line.predicted_memory_bytes and line.memory_bytes
    ]
    yield f"memory: {MEMORY_BAR.words()}", verdict_of(errors, MEMORY_BAR), (
        f"{_middle_and_worst(errors)}, {len(errors)} cells"
    )  # fmt: skip
    yield _order(rows, lines)


def markdown(lines: Sequence[Line]) -> str:
    """A row for each prediction; empty where there is none."""
    head = [
        "| transport | images a device | preset | predicted by | measured ms "
        "| spread of five blocks | predicted ms | error | counts |",
        "|---|---:|---|---|---:|---:|---:|---:|---|",
    ]  # fmt: skip
    rows = [
        f"| {row.transport} | {row.batch} | {row.preset} | {_words(row.kind)} "
        f"| {row.measured_ms:.2f} | {row.spread_ratio:.1%} | {row.predicted_ms:.2f} "
        f"| {row.error_ratio:+.1%} | {'yes' if row.counts else 'too noisy'} |"
        for row in rows_of(lines)
    ]
    return "\n".join(head + rows) if rows else ""


def _predictable(lines: Iterable[Line]) -> Iterator[Line]:
    """Several devices, each in a process of its own."""
    for line in lines:
        if line.transport != ONE and line.preset != DATA_PARALLEL and line.median_ms:
            yield line


def _rows(line: Line) -> Iterator[Row]:
    again = "replay" if line.preset == REFERENCE else "one knob"
    for kind, predicted in (("one device", line.predicted_ms), (again, line.replayed_ms)):
        if predicted is not None and line.median_ms:
            yield Row(
                transport=line.transport,
                batch=line.batch,
                preset=line.preset,
                kind=kind,
                measured_ms=line.median_ms,
                spread_ratio=spread_ratio(_blocks(line.step_ms)),
                predicted_ms=predicted,
            )


def _blocks(windows: Sequence[float]) -> list[float]:
    """Means of five runs of windows; windows of one cell are of about equal length."""
    cuts = [round(number * len(windows) / REPEATS) for number in range(REPEATS + 1)]
    return [statistics.mean(windows[a:b]) for a, b in itertools.pairwise(cuts)]


def _words(kind: str) -> str:
    return {
        "replay": "a replay of another launch",
        "one knob": "that replay with one knob changed",
        "one device": "one device and the sweep",
    }[kind]


def _order(rows: list[Row], lines: Sequence[Line]) -> Result:
    images = {(line.transport, line.batch, line.preset): line.global_batch for line in lines}
    verdict, right, judged, in_order, pairs = all_orders(list(orders(rows, images)))
    name = f"the fastest preset is ranked first where it leads by more than {GAP_RATIO:.0%}"
    return name, verdict, f"{right} of {judged} times; {in_order} of {pairs} pairs in order"


def _middle_and_worst(errors: Sequence[float]) -> str:
    if not errors:
        return "–"
    return f"median {statistics.median(errors):.1%}, worst {max(errors):.1%}"
