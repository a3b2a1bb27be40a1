"""Somebody else trains on GPU 0; or a run of Ringside does."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.machine import GpuState, Process

from tests.doctor.making import changed, machine  # isort: skip


def used(*, is_ours: bool) -> GpuState:
    process = Process(pid=7, name="python", user="ann", memory_bytes=2**33, is_ours=is_ours)
    return GpuState(index=0, name="NVIDIA H200", memory_used_bytes=2**33, processes=(process,))


def firing() -> Case:
    return Case(machine=changed(machine(), gpus=(used(is_ours=False),)))


def silent() -> Case:
    return Case(machine=changed(machine(), gpus=(used(is_ours=True),)))
