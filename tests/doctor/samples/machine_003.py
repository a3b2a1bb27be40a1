"""PCIe 3 in a slot of PCIe 5 while a copy runs; or at rest, where that is no news."""

from __future__ import annotations

from ringside.doctor import Case
from ringside.machine import GpuState

from tests.doctor.making import changed, machine  # isort: skip


def linked(*, is_pcie_loaded: bool) -> GpuState:
    return GpuState(
        index=0, name="NVIDIA H200", pcie_generation=3, max_pcie_generation=5, pcie_width=16,
        max_pcie_width=16, is_pcie_loaded=is_pcie_loaded,
    )  # fmt: skip


def firing() -> Case:
    return Case(machine=changed(machine(), gpus=(linked(is_pcie_loaded=True),)))


def silent() -> Case:
    return Case(machine=changed(machine(), gpus=(linked(is_pcie_loaded=False),)))
