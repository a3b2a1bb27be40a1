"""The PCIe links while copies run: an idle link is trained down to save power."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ringside.hardware import Hardware
from ringside.machine.facts import GpuState
from ringside.machine.gpus import pcie_now
from ringside.machine.torch_report import TorchReport


class BusyLinks:
    """Remembers the best generation and width of each link that `look` saw."""

    def __init__(self, handles: Mapping[int, Any]) -> None:
        self.handles = handles
        self.best: dict[int, tuple[int, int]] = {}

    def look(self) -> None:
        """Read all links now."""
        for index, handle in self.handles.items():
            now = pcie_now(handle)
            best = self.best.get(index, (0, 0))
            self.best[index] = max(best[0], now[0] or 0), max(best[1], now[1] or 0)

    def applied_to(
        self, gpus: tuple[GpuState, ...], hardware: Hardware, report: TorchReport
    ) -> tuple[GpuState, ...]:
        """The states with what was seen, for those GPUs to which torch really copied."""
        order = [gpu.index for gpu in hardware.gpus]
        rates = dict(zip(order, report.copy_bytes_per_s, strict=False))
        return tuple(self._applied(gpu, rates.get(gpu.index)) for gpu in gpus)

    def _applied(self, gpu: GpuState, rate: float | None) -> GpuState:
        generation, width = self.best.get(gpu.index, (0, 0))
        if rate is None or not generation or not width:
            return gpu if rate is None else replace(gpu, copy_bytes_per_s=rate)
        return replace(
            gpu,
            pcie_generation=generation,
            pcie_width=width,
            is_pcie_loaded=True,
            copy_bytes_per_s=rate,
        )
