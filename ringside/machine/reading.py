"""One look at the whole machine; what cannot be read becomes a sentence, never an error."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from ringside.environment_lint import lint
from ringside.errors import RingsideError
from ringside.hardware import Gpu, Hardware, read_hardware
from ringside.machine import host
from ringside.machine.facts import GpuState, Link, Machine
from ringside.machine.gpus import read_gpu
from ringside.machine.links import num_nvlinks, numa_node, read_links
from ringside.machine.loading import BusyLinks
from ringside.machine.nvml import open_nvml
from ringside.machine.torch_report import TorchReport
from ringside.words import say


class AskTorch(Protocol):
    """Starts a process with torch in it; `meanwhile` is called again and again until it ends.

    Raises RingsideError with a sentence where there is no answer.
    """

    def __call__(self, *, load: bool, meanwhile: Callable[[], None]) -> TorchReport: ...


def read_machine(
    runs_root: Path, *, load_links: bool = False, ask_torch: AskTorch | None = None
) -> Machine:
    """Everything about this machine; without `ask_torch` what only torch knows stays unknown.

    `load_links`: copy to each GPU while the PCIe links are read, which needs `ask_torch` and takes
    about a second a GPU.
    """
    hardware = read_hardware()
    problems: list[str] = []
    with open_nvml(hardware, problems) as handles:
        gpus = tuple(_gpu(gpu, handles.get(gpu.index), problems) for gpu in hardware.gpus)
        links = _links(handles, problems)
        busy = BusyLinks(handles)
        report = _report(ask_torch, load_links and bool(handles), busy.look, problems)
    if report:
        if hardware.gpus and not report.num_devices:
            problems.append(say("machine.torch_sees_none", num=len(hardware.gpus)))
        gpus = busy.applied_to(gpus, hardware, report)
        links = _with_peers(links, hardware, report)
    return _machine(hardware, gpus, links, report or TorchReport(version=""), runs_root, problems)


def _machine(
    hardware: Hardware, gpus: tuple[GpuState, ...], links: tuple[Link, ...], report: TorchReport,
    runs_root: Path, problems: list[str],
) -> Machine:  # fmt: skip
    shm_total, shm_free = host.shared_memory()
    return Machine(
        t=time.time(),
        hardware=hardware,
        gpus=gpus,
        links=links,
        num_cores=hardware.num_cores,
        omp_num_threads=host.omp_num_threads(),
        shm_total_bytes=shm_total,
        shm_free_bytes=shm_free,
        disk_free_bytes=host.disk_bytes(runs_root)[1],
        load_average=host.load_average(),
        free_ports=host.free_ports(),
        arch_list=report.arch_list,
        torch_cuda=report.cuda,
        nccl=report.nccl,
        variables=lint(os.environ),
        problems=tuple(problems),
    )


def _gpu(gpu: Gpu, handle: Any, problems: list[str]) -> GpuState:
    """What could be read; at the least what the hardware knows."""
    state = GpuState(
        index=gpu.index,
        name=gpu.name,
        memory_used_bytes=gpu.memory_used_bytes,
        memory_total_bytes=gpu.memory_total_bytes,
    )
    if handle is None:
        return state
    try:
        state = read_gpu(gpu, handle)
        return replace(state, num_nvlinks=num_nvlinks(handle), numa_node=numa_node(handle))
    # Whatever a library of another decade raises: a check of a machine must not end with it.
    except Exception as error:
        problems.append(say("machine.gpu", index=gpu.index, why=str(error).rstrip(".")))
        return state


def _links(handles: dict[int, Any], problems: list[str]) -> tuple[Link, ...]:
    try:
        return read_links(handles)
    except Exception as error:  # as above
        problems.append(say("machine.links", why=str(error).rstrip(".")))
        return ()


def _report(
    ask_torch: AskTorch | None, load: bool, meanwhile: Callable[[], None], problems: list[str]
) -> TorchReport | None:
    if ask_torch is None:
        return None
    try:
        report = ask_torch(load=load, meanwhile=meanwhile)
    except RingsideError as error:
        problems.append(str(error))
        return None
    problems += report.problems
    return report


def _with_peers(
    links: tuple[Link, ...], hardware: Hardware, report: TorchReport
) -> tuple[Link, ...]:
    """Where NVML says nothing about peer access, what torch says."""
    order = [gpu.index for gpu in hardware.gpus]
    if report.num_devices != len(order):
        return links
    peers = {(order[a], order[b]) for a, b in report.peers}
    return tuple(
        link
        if link.p2p is not None
        else replace(link, p2p={(link.a, link.b), (link.b, link.a)} <= peers)
        for link in links
    )
