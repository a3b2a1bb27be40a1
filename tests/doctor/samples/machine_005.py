"""Two ranks with four workers each on four cores; or on sixteen."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import machine, record  # isort: skip


def firing() -> Case:
    return Case(machine=machine(num_cores=4), record=record())


def silent() -> Case:
    return Case(machine=machine(num_cores=16), record=record())
