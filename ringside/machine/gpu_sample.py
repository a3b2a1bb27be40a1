"""What NVML says of a GPU at this moment, and what went over its links since the moment before.

Each question is asked by itself and may be refused: a virtual machine hides PCIe counters, and a
card without NVLink has none.
"""

from __future__ import annotations

import time
from typing import Any

from ringside.machine.gpus import clock_reasons
from ringside.machine.links import NUM_NVLINKS
from ringside.machine.nvml import ask
from ringside.samples import GpuSample

KIB = 1024
KB = 1000


class GpuSampler:
    """Samples one GPU by its NVML handle; call between nvmlInit and nvmlShutdown.

    A sample of PCIe takes some 20 ms each way: NVML counts that long.
    """

    def __init__(self, index: int, handle: Any) -> None:
        self._index, self._handle = index, handle
        self._before: tuple[float, int, int] | None = None

    def sample(self) -> GpuSample:
        """Everything that the driver tells now."""
        import pynvml

        handle = self._handle
        rates = ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
        memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
        power_mw = ask(pynvml.nvmlDeviceGetPowerUsage, handle)
        received, sent = self._nvlink()
        return GpuSample(
            index=self._index,
            utilisation_ratio=rates.gpu / 100 if rates else None,
            memory_used_bytes=int(memory.used) if memory else None,
            memory_total_bytes=int(memory.total) if memory else None,
            power_w=None if power_mw is None else power_mw / 1000,
            sm_clock_mhz=ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
            temperature_c=ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
            pcie_rx_bytes_per_s=self._pcie(pynvml.NVML_PCIE_UTIL_RX_BYTES),
            pcie_tx_bytes_per_s=self._pcie(pynvml.NVML_PCIE_UTIL_TX_BYTES),
            nvlink_rx_bytes_per_s=received,
            nvlink_tx_bytes_per_s=sent,
            throttle_reasons=tuple(word for word in clock_reasons(handle) if word != "idle"),
        )

    def _pcie(self, counter: int) -> float | None:
        """NVML counts in KB/s."""
        import pynvml

        rate = ask(pynvml.nvmlDeviceGetPcieThroughput, self._handle, counter)
        return None if rate is None else float(rate * KB)

    def _nvlink(self) -> tuple[float | None, float | None]:
        """Bytes per second received and sent since the sample before; None for the first one."""
        import pynvml

        received = self._counted(pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX)
        sent = self._counted(pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX)
        if received is None or sent is None:
            return None, None
        now, before = time.monotonic(), self._before
        self._before = (now, received, sent)
        if before is None or received < before[1] or sent < before[2]:
            return None, None
        elapsed_s = now - before[0]
        return (received - before[1]) / elapsed_s, (sent - before[2]) / elapsed_s

    def _counted(self, field: int) -> int | None:
        """Bytes so far over all links; the scope of the field is the number of a link (nvml.h)."""
        import pynvml

        most = max(NUM_NVLINKS, getattr(pynvml, "NVML_NVLINK_MAX_LINKS", 0))
        fields = [(field, link) for link in range(most)]
        values = ask(pynvml.nvmlDeviceGetFieldValues, self._handle, fields) or ()
        counts = [int(v.value.ullVal) for v in values if v.nvmlReturn == pynvml.NVML_SUCCESS]
        return KIB * sum(counts) if counts else None
