"""`ringside bench`: the steps of presets one after another, timed on this machine."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from app.commands.tables import DASH, number, plain_console, plain_table
from ringside.durations import duration
from ringside.errors import RingsideError
from ringside.hardware import Hardware, read_hardware
from ringside.launch.occupied import require_idle
from ringside.launch.step_bench import StepBench, TimedStep, label
from ringside.presets import Library
from ringside.request import RunRequest, resolve
from ringside.rundir import runs_root
from ringside.spec import RunSpec
from ringside.words import percent

GIB = 2**30
NEAR = 0.05
"""Presets whose images/s differ by less, or by less than their blocks spread, are as fast."""


def run(request: RunRequest, presets: Sequence[str], *, seconds: float, as_json: bool) -> int:
    """Measure and print, the fastest first; 1 when nothing could be timed, 130 when cut short."""
    hardware, root = read_hardware(), runs_root()
    specs, refused = _resolved(request, presets, hardware)
    require_idle(root, hardware)
    bench = StepBench(specs, seconds=seconds, synthetic=request.data.startswith("synthetic"))
    _tell(plan_line(bench))
    is_whole = True
    try:
        bench.run(hardware, lambda number, spec, left_s: _tell(_line(bench, number, spec, left_s)))
    except KeyboardInterrupt:
        is_whole = False
        _tell("Cut short; what was timed stands.")
    refused |= bench.refused
    rows = bench.rows()
    if as_json:
        print(msgspec.json.encode({"presets": rows, "refused": refused}).decode())
    else:
        _print(rows, refused)
    if not is_whole:
        return 130
    return 0 if rows else 1


def plan_line(bench: StepBench) -> str:
    """How many launches there will be, and about how long they take."""
    total, bases = len(bench.launches), bench.num_baselines
    beside = f", {bases} of them one device for comparison" if bases else ""
    return f"{total} {_launches(total)}{beside}: about {_about(bench.guess_s)}. Nothing is trained."


def _resolved(
    request: RunRequest, presets: Sequence[str], hardware: Hardware
) -> tuple[list[RunSpec], dict[str, str]]:
    """The requests, and a sentence for each of several presets that cannot run here."""
    library, specs, refused = Library(), [], {}
    for name in dict.fromkeys(presets):
        try:
            specs.append(resolve(msgspec.structs.replace(request, preset=name), hardware, library))
        except RingsideError as error:
            if len(presets) == 1:
                raise
            refused[name] = str(error)
    return specs, refused


def _line(bench: StepBench, number: int, spec: RunSpec, left_s: float) -> str:
    devices = "1 device" if spec.num_devices == 1 else f"{spec.num_devices} devices"
    return (
        f"{number} of {len(bench.launches)}: {label(spec)}, {devices}, {spec.micro_batch} images "
        f"each; about {_about(left_s)} left"
    )


def _about(seconds: float) -> str:
    """Whole minutes from two on, else tens of seconds."""
    unit = 60 if seconds >= 120 else 10
    return duration(max(unit, unit * round(seconds / unit)))


def _launches(num: int) -> str:
    return "launch" if num == 1 else "launches"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print(rows: list[TimedStep], refused: dict[str, str]) -> None:
    console = plain_console()
    if rows:
        table = plain_table(
            "preset", "devices", "images each", "step ms", "±", "images/s", "speed-up",
            "efficiency", "waits for images", "memory GiB",
        )  # fmt: skip
        for row in rows:
            table.add_row(*_cells(row))
        console.print(table)
        for line in notes(rows):
            console.print(line, soft_wrap=True)
    for name, sentence in refused.items():
        console.print(f"{name}: {sentence}", soft_wrap=True)


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


def notes(rows: Sequence[TimedStep]) -> Iterator[str]:
    """What stands out, and what the figures are not."""
    several = [row for row in rows if row.num_devices > 1]
    slower = [row.preset for row in several if row.speedup is not None and row.speedup < 1]
    if slower:
        yield f"Slower than one device: {', '.join(slower)}. `ringside doctor` finds out why."
    if len(several) > 1:
        first, second = several[:2]
        lead = first.samples_per_s / second.samples_per_s - 1
        noise = math.hypot(*(row.spread_ms / row.step_ms for row in (first, second)))
        if lead < max(NEAR, noise):
            yield (
                f"{first.preset} and {second.preset} are about as fast: {percent(lead, 1)} apart, "
                f"with a spread of {percent(noise, 1)}."
            )
        else:
            yield f"{first.preset} is the fastest, {percent(lead)} before {second.preset}."
    if len({row.global_batch / row.num_devices for row in several}) > 1:
        yield "Presets that accumulate have a larger global batch, and with it other scores."
    yield "Speed-up is over one device at the same precision and images each. Scores need a run."
