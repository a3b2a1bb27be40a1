"""What the checks say of a machine, without any run, and where the latest look is kept."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ringside.doctor.case import Case
from ringside.doctor.diagnosis import all_checks
from ringside.doctor.findings import Finding
from ringside.doctor.gathering import MACHINE_FILE, machine_of
from ringside.doctor.weighing import weight_of
from ringside.errors import RunDirError
from ringside.hardware import Hardware
from ringside.machine import Machine
from ringside.measurements import Sweep
from ringside.measurements.store import FOLDER, Store
from ringside.rundir import write_atomic
from ringside.words import say

CPU_RANKS = 2
"""Ranks of a sweep where there is no GPU: as many processes as a run starts on a CPU."""


def case_of_machine(root: Path) -> Case:
    """The machine as it was last looked at, and its newest sweep; empty before the first look."""
    machine = machine_of(root, None)
    if machine is None:
        return Case()
    sweep = Store(root).sweep(machine.hardware, sweep_ranks(machine.hardware))
    return Case(machine=machine, variables=machine.variables, sweep=sweep)


def sweep_ranks(hardware: Hardware) -> int:
    """One rank a GPU; without any, as many as there is a core for, two at most."""
    return len(hardware.gpus) or min(CPU_RANKS, hardware.num_devices())


def machine_findings(machine: Machine, sweep: Sweep | None = None) -> tuple[Finding, ...]:
    """All findings, what weighs most first."""
    case = Case(machine=machine, sweep=sweep)
    found = [
        (check.ORDER, finding)
        for check in all_checks()
        if (finding := check.check(case)) is not None
    ]
    found.sort(key=lambda pair: (weight_of(pair[1]), pair[0]))
    return tuple(finding for _, finding in found)


def keep_machine(machine: Machine, root: Path) -> Path:
    """Write the latest look beside the measurements; RunDirError where that cannot be written."""
    path = root / FOLDER / MACHINE_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunDirError(
            say("runs_folder.unwritable", path=path.parent, why=error.strerror)
        ) from None
    write_atomic(path, msgspec.json.format(msgspec.json.encode(machine), indent=1) + b"\n")
    return path
