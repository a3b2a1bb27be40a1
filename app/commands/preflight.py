"""What stands in the way of a run, in the terminal: before it starts, and kept with it."""

from __future__ import annotations

import sys

import msgspec

from app.commands.printing import padded
from ringside.errors import SpecError
from ringside.hardware import Hardware, read_hardware
from ringside.preflight import Item, Kept, look, preflight, record_of
from ringside.request import RunRequest
from ringside.rundir import runs_root
from ringside.spec import RunSpec
from ringside.words import say

SIGNS = {"error": "✕", "warning": "▲", "unknown": "?", "fine": "✓"}


def show(request: RunRequest, *, check: bool, as_json: bool) -> int:
    """Print everything that was looked at; 1 when something blocks the run, else 0.

    `check`: decode every picture of the data first.
    """
    from app.views.gpus import states_now
    from ringside.data import check_data

    hardware = read_hardware()
    case = look(
        request, hardware, runs_root(), reports=check_data if check else None,
        gpus=states_now(hardware),
    )  # fmt: skip
    found = preflight(case)
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    else:
        for item in found.items:
            print(line_of(item))
    return 1 if found.errors else 0


def line_of(item: Item) -> str:
    """`▲ warning  disk: ...`, with the sign beside the word."""
    about, level = item.code, padded(say(f"terminal.level_{item.level}"), 8)
    if item.field:
        about = say("terminal.aside", text=about, aside=item.field)
    told = say("terminal.figure", label=about, value=item.sentence)
    return f"{SIGNS[item.level]} {level} {told}"


def before_start(spec: RunSpec, hardware: Hardware) -> Kept:
    """Print what a person should know before the run starts; SpecError for what blocks it.

    In a terminal a warning is said and the run starts: whoever types the command can stop it. So
    what is to be kept with the run says that all of them were accepted.
    """
    from app.views.gpus import states_now

    asked = RunRequest(preset=spec.preset, queue=spec.queue, beside=spec.beside)
    case = look(asked, hardware, runs_root(), spec=spec, gpus=states_now(hardware))
    found = preflight(case)
    for item in found.warnings:
        print(f"  {line_of(item)}")
    if found.errors:
        raise SpecError(" ".join(item.sentence for item in found.errors))
    return record_of(case, {item.code for item in found.warnings})
