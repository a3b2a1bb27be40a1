"""Each GPU now, through NVML: load, clocks, what slows them, the PCIe link, who uses it.

Everything is asked for by itself: a driver, a virtual machine or a card may refuse any of it, and
what is refused is None.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from ringside.hardware import Gpu
from ringside.identity import RUN_TOKEN
from ringside.machine.facts import GpuState, Process
from ringside.machine.nvml import ask

# nvml.h, nvmlClocksEventReasons; the words are what `nvidia-smi -q -d PERFORMANCE` calls them.
REASONS = {
    0x001: "idle",
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "power brake",
    0x100: "display clocks",
    0x200: "board limit",
    0x400: "reliability",
}
# Trainers that were started by hand carry no token.
OURS = ("training.train", "training.probe")


def read_gpu(gpu: Gpu, handle: Any) -> GpuState:
    """What NVML says of one GPU; call between nvmlInit and nvmlShutdown."""
    import pynvml

    memory = ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    rates = ask(pynvml.nvmlDeviceGetUtilizationRates, handle)
    generation, width = pcie_now(handle)
    return GpuState(
        index=gpu.index,
        name=gpu.name,
        memory_used_bytes=int(memory.used) if memory else gpu.memory_used_bytes,
        memory_total_bytes=int(memory.total) if memory else gpu.memory_total_bytes,
        utilisation_ratio=rates.gpu / 100 if rates else None,
        power_w=_watts(ask(pynvml.nvmlDeviceGetPowerUsage, handle)),
        power_limit_w=_watts(ask(pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)),
        temperature_c=ask(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
        sm_clock_mhz=ask(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        max_sm_clock_mhz=ask(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM),
        throttle_reasons=clock_reasons(handle),
        pcie_generation=generation,
        max_pcie_generation=ask(pynvml.nvmlDeviceGetMaxPcieLinkGeneration, handle) or None,
        pcie_width=width,
        max_pcie_width=ask(pynvml.nvmlDeviceGetMaxPcieLinkWidth, handle) or None,
        processes=_processes(handle),
    )


def pcie_now(handle: Any) -> tuple[int | None, int | None]:
    """Generation and width of the link at this moment; a virtual machine that hides them says 0."""
    import pynvml

    generation = ask(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, handle)
    width = ask(pynvml.nvmlDeviceGetCurrPcieLinkWidth, handle)
    return generation or None, width or None


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def clock_reasons(handle: Any) -> tuple[str, ...]:
    """Why the clocks are not higher, in words; the name of the question changed with driver 535."""
    import pynvml

    bits = None
    for name in (
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
    ):
        if bits is None and (function := getattr(pynvml, name, None)):
            bits = ask(function, handle)
    return tuple(word for bit, word in REASONS.items() if (bits or 0) & bit)


def _processes(handle: Any) -> tuple[Process, ...]:
    """Whoever has a context on the GPU; a container may see fewer than there are."""
    import pynvml

    found: dict[int, int | None] = {}
    for function in (
        pynvml.nvmlDeviceGetComputeRunningProcesses,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        for one in ask(function, handle) or ():
            found.setdefault(int(one.pid), one.usedGpuMemory)
    return tuple(_process(pid, memory) for pid, memory in sorted(found.items()))


def _process(pid: int, memory_bytes: int | None) -> Process:
    """Name and user where this system knows the number; NVML may speak of the host's numbers."""
    import psutil

    name = user = None
    is_ours = False
    with suppress(psutil.Error, OSError, KeyError):
        process = psutil.Process(pid)
        name = process.name()
        user = process.username()
        is_ours = _is_ours(process)
    return Process(pid=pid, name=name, user=user, memory_bytes=memory_bytes, is_ours=is_ours)


def _is_ours(process: Any) -> bool:
    """This process, its children, and everything that a run of this user started."""
    if process.uids().real != os.getuid():
        return False
    if os.getpid() in (process.pid, *(parent.pid for parent in process.parents())):
        return True
    return RUN_TOKEN in process.environ() or any(name in OURS for name in process.cmdline())
