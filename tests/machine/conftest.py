"""A driver that is not there: the real nvidia-ml-py with its calls into the library replaced.

Names and signatures stay those of the installed module, and answers are its own structures, so a
call that does not fit the real one fails here too.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

GIB = 2**30
SWITCH_PLACE = (0, 0xFE, 0)


@dataclass
class FakeGpu:
    """One GPU; `nvlinks`: what each active link leads to, another GPU's index or "switch"."""

    name: str = "NVIDIA H200"
    place: tuple[int, int, int] = (0, 0x18, 0)
    memory: tuple[int, int] = (GIB, 140 * GIB)
    capability: tuple[int, int] = (9, 0)
    reasons: int = 0x1
    pcie: tuple[int, int] = (5, 16)
    max_pcie: tuple[int, int] = (5, 16)
    nvlinks: list[Any] = field(default_factory=list)
    processes: list[tuple[int, int | None]] = field(default_factory=list)
    refuses: frozenset[str] = frozenset()


class FakeDriver:
    """What NVML answers for these GPUs. `ancestor` and `p2p` by pair of indices."""

    def __init__(self, *gpus: FakeGpu) -> None:
        self.gpus = gpus
        self.ancestor: dict[frozenset[int], int] = {}
        self.p2p: dict[tuple[frozenset[int], int], int] = {}
        self.is_dead = False
        self.num_open = 0

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, function in inspect.getmembers(self, inspect.ismethod):
            if name.startswith("nvml"):
                real = inspect.signature(getattr(pynvml, name))
                assert len(real.parameters) >= len(inspect.signature(function).parameters), name
                monkeypatch.setattr(pynvml, name, self._guarded(name, function))

    def _guarded(self, name: str, function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if self.is_dead and name != "nvmlShutdown":
                raise pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
            if arguments and name in self.gpus[arguments[0]].refuses:
                raise not_supported()
            return function(*arguments)

        return call

    # The names are NVML's.
    def nvmlInit(self) -> None:  # noqa: N802
        self.num_open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.num_open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "570.86.15"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return self.gpus[handle].name

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return f"GPU-{handle}"

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> list[int]:  # noqa: N802
        return list(self.gpus[handle].capability)

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        info = pynvml.c_nvmlMemory_t()
        info.used, info.total = self.gpus[handle].memory
        return info

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        rates = pynvml.c_nvmlUtilization_t()
        rates.gpu = 37
        return rates

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return 76_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:  # noqa: N802
        return 700_000

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:  # noqa: N802
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return 31

    def nvmlDeviceGetClockInfo(self, handle: int, type: int) -> int:  # noqa: N802
        assert type == pynvml.NVML_CLOCK_SM
        return 345

    def nvmlDeviceGetMaxClockInfo(self, handle: int, type: int) -> int:  # noqa: N802
        assert type == pynvml.NVML_CLOCK_SM
        return 1980

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: int) -> int:  # noqa: N802
        return self.gpus[handle].reasons

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:  # noqa: N802
        return self.gpus[handle].reasons

    def nvmlDeviceGetCurrPcieLinkGeneration(self, handle: int) -> int:  # noqa: N802
        return self.gpus[handle].pcie[0]

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: int) -> int:  # noqa: N802
        return self.gpus[handle].pcie[1]

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle: int) -> int:  # noqa: N802
        return self.gpus[handle].max_pcie[0]

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle: int) -> int:  # noqa: N802
        return self.gpus[handle].max_pcie[1]

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        return [
            SimpleNamespace(pid=pid, usedGpuMemory=memory)
            for pid, memory in self.gpus[handle].processes
        ]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> list[Any]:  # noqa: N802
        return self.nvmlDeviceGetComputeRunningProcesses(handle)[:1]

    def nvmlDeviceGetPciInfo(self, handle: int) -> Any:  # noqa: N802
        return pci_info(self.gpus[handle].place)

    def nvmlDeviceGetTopologyCommonAncestor(self, device1: int, device2: int) -> int:  # noqa: N802
        level = self.ancestor.get(frozenset((device1, device2)))
        if level is None:
            raise not_supported()
        return level

    def nvmlDeviceGetP2PStatus(  # noqa: N802
        self,
        device1: int,
        device2: int,
        p2pIndex: int,  # noqa: N803
    ) -> int:
        assert isinstance(p2pIndex, int)  # ctypes refuses the tuple that nvidia-ml-py defines
        status = self.p2p.get((frozenset((device1, device2)), p2pIndex))
        if status is None:
            raise not_supported()
        return status

    def nvmlDeviceGetNvLinkState(self, device: int, link: int) -> int:  # noqa: N802
        links = self.gpus[device].nvlinks
        if not links:
            raise not_supported()
        if link >= 18:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return int(link < len(links))

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: int, link: int) -> int:  # noqa: N802
        is_switch = self.gpus[handle].nvlinks[link] == "switch"
        return pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH if is_switch else 0

    def nvmlDeviceGetNvLinkRemotePciInfo(self, device: int, link: int) -> Any:  # noqa: N802
        end = self.gpus[device].nvlinks[link]
        return pci_info(SWITCH_PLACE if end == "switch" else self.gpus[end].place)


def not_supported() -> Exception:
    return pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def pci_info(place: tuple[int, int, int]) -> Any:
    info = pynvml.nvmlPciInfo_t()
    info.domain, info.bus, info.device = place
    return info


@pytest.fixture
def driver(monkeypatch):
    """Install a driver with these GPUs: `driver(FakeGpu(), FakeGpu(place=(0, 0x2A, 0)))`."""

    def install(*gpus: FakeGpu) -> FakeDriver:
        fake = FakeDriver(*gpus)
        fake.install(monkeypatch)
        return fake

    return install


@pytest.fixture
def fake_gpu():
    """The class of a GPU of the driver that is not there."""
    return FakeGpu
