"""`ringside bench`: the steps of presets one after another, timed on this machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from app.commands.resolving import resolve_all
from app.commands.tables import DASH, number, plain_console, plain_table
from ringside.errors import RunDirError
from ringside.hardware import read_hardware
from ringside.launch.bench_words import plan_line, progress_line
from ringside.launch.occupied import require_idle
from ringside.launch.step_bench import StepBench, TimedStep, is_near, lead
from ringside.measurements import StepTiming
from ringside.measurements.store import Store
from ringside.presets import Library
from ringside.request import RunRequest
from ringside.rundir import runs_root
from ringside.words import percent, say

GIB = 2**30
HEADS = (
    "column.preset", "column.devices", "bench.images_each", "column.step_ms", None, "column.rate",
    "column.speedup", "column.efficiency", "bench.data_wait", "column.memory_gib",
)  # fmt: skip
"""Keys of the words; None is the spread of the step before it."""


def run(request: RunRequest, presets: Sequence[str], *, seconds: float, as_json: bool) -> int:
    """Measure, keep and print, the fastest first.

    1 when nothing could be timed, 130 when cut short.
    """
    hardware, root = read_hardware(), runs_root()
    specs, refused = resolve_all(request, presets, hardware, Library())
    require_idle(root, hardware)
    bench, store = StepBench(specs, seconds=seconds), Store(root)
    if specs:
        _tell(plan_line(bench))
    is_whole = True
    try:
        bench.run(
            hardware,
            lambda number, spec, left_s: _tell(progress_line(bench, number, spec, left_s)),
            lambda found: _keep(store, found),
        )
    except KeyboardInterrupt:
        is_whole = False
        _tell(say("bench.cut_short"))
    refused |= bench.refused
    rows = bench.rows()
    if as_json:
        print(msgspec.json.encode({"presets": rows, "refused": refused}).decode())
    else:
        _print(rows, bench.asked(), refused)
    if not is_whole:
        return 130
    return 0 if rows else 1


def _keep(store: Store, found: StepTiming) -> None:
    """The table is what was asked for: it comes though nothing can be written."""
    try:
        store.save(found)
    except RunDirError as error:
        _tell(str(error))


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print(rows: list[TimedStep], asked: list[TimedStep], refused: dict[str, str]) -> None:
    console = plain_console()
    if rows:
        table = plain_table(*("± ms" if key is None else say(key) for key in HEADS))
        for row in rows:
            table.add_row(*_cells(row))
        console.print(table)
        for line in notes(asked):
            console.print(line, soft_wrap=True)
    for name, sentence in refused.items():
        console.print(say("terminal.of_preset", preset=name, sentence=sentence), soft_wrap=True)


def _cells(row: TimedStep) -> Iterator[Any]:
    is_plain = row.mixed_precision == "no"
    yield row.preset if is_plain else f"{row.preset} ({row.mixed_precision})"
    yield str(row.num_devices)
    yield str(row.micro_batch)
    yield number(row.step_ms, ".1f")
    yield number(row.spread_ms, ".1f")
    yield number(row.samples_per_s, ",.0f")
    yield number(row.speedup, ".2f", "x")
    yield DASH if row.efficiency_ratio is None else percent(row.efficiency_ratio)
    yield DASH if row.data_ms is None else percent(row.data_ms / row.step_ms)
    yield number(None if row.memory_bytes is None else row.memory_bytes / GIB, ".2f")


def notes(asked: Sequence[TimedStep]) -> Iterator[str]:
    """What stands out among what was asked for, fastest first, and what the figures are not."""
    slower = [row.preset for row in asked if row.speedup is not None and row.speedup < 1]
    if slower:
        yield say("bench.slower", presets=", ".join(slower))
    if len(asked) > 1:
        first, second = asked[:2]
        ahead, noise = lead(first, second)
        names = {"first": first.preset, "second": second.preset}
        if is_near(first, second):
            yield say("bench.as_fast", ahead=ahead, noise=noise, **names)
        else:
            yield say("bench.faster", ahead=ahead, **names)
    if any(row.global_batch > row.micro_batch * row.num_devices for row in asked):
        yield say("bench.accumulates")
    yield say("bench.compared")
