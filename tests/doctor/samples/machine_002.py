"""The power supply slows a GPU down; or it is at rest."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.machine import GpuState

from tests.doctor.making import changed, machine  # isort: skip


def held(reason: str) -> GpuState:
    return GpuState(index=0, name="NVIDIA H200", throttle_reasons=(reason,))


def firing() -> Case:
    return Case(machine=changed(machine(), gpus=(held("power brake"),)))


def silent() -> Case:
    return Case(machine=changed(machine(), gpus=(held("idle"),)))
