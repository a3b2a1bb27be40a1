"""Whether a stored measurement was made with the torch, and on the cores, that there are now."""

from __future__ import annotations

from importlib import metadata

from ringside.cores import num_cores
from ringside.hardware import Hardware
from ringside.measurements.description import Description
from ringside.measurements.experiment import Experiment
from ringside.measurements.timing import StepTiming
from ringside.spec import Device


def fits(
    found: Experiment | StepTiming | Description, device: Device, hardware: Hardware | None = None
) -> bool:
    """Against `hardware`, or this machine now. What nobody wrote down excludes nothing.

    GPUs are compared by their names alone; how fast a CPU is, its cores tell as much as its name.
    """
    torch = hardware.versions.get("torch") if hardware is not None else _installed_torch()
    measured = found.versions.get("torch")
    if torch and measured and _public(torch) != _public(measured):
        return False
    if device != "cpu" or found.num_cores is None:
        return True
    return found.num_cores == (hardware.num_cores if hardware is not None else num_cores())


def _public(version: str) -> str:
    """Without the build: torch calls itself `2.11.0+cu130`, and its package may leave that out."""
    return version.partition("+")[0]


def _installed_torch() -> str | None:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return None
