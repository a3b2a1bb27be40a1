"""What the checks say of a machine, without any run, and where the latest look is kept."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ringside.doctor.case import Case
from ringside.doctor.diagnosis import all_checks
from ringside.doctor.findings import Finding
from ringside.doctor.gathering import MACHINE_FILE
from ringside.doctor.weighing import weight_of
from ringside.errors import RunDirError
from ringside.machine import Machine
from ringside.measurements import Sweep
from ringside.measurements.store import FOLDER
from ringside.rundir import write_atomic


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
        raise RunDirError(f"{path.parent} cannot be written: {error.strerror}.") from None
    write_atomic(path, msgspec.json.format(msgspec.json.encode(machine), indent=1) + b"\n")
    return path
