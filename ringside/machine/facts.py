"""The machine as plain structs; every field that could not be read is None, never 0."""

from __future__ import annotations

from typing import Literal

import msgspec

from ringside.environment_lint import Finding as Variable
from ringside.hardware import Hardware

LinkKind = Literal["nvlink", "pix", "pxb", "phb", "node", "sys", "same", "unknown"]
"""As `nvidia-smi topo -m` names them: NVLink; one PCIe switch; several; a host bridge; one NUMA
node; across sockets."""


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who uses a GPU; `is_ours` where it belongs to a run of Ringside."""

    pid: int
    name: str | None = None
    user: str | None = None
    memory_bytes: int | None = None
    is_ours: bool = False


class GpuState(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU now. PCIe generation and width are read while a copy runs where that is possible
    (`is_pcie_loaded`), because an idle link is trained down. `copy_bytes_per_s`: from pinned host
    memory to this GPU, measured."""

    index: int
    name: str
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    utilisation_ratio: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    throttle_reasons: tuple[str, ...] = ()
    pcie_generation: int | None = None
    max_pcie_generation: int | None = None
    pcie_width: int | None = None
    max_pcie_width: int | None = None
    is_pcie_loaded: bool = False
    copy_bytes_per_s: float | None = None
    num_nvlinks: int | None = None
    numa_node: int | None = None
    processes: tuple[Process, ...] = ()


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """Between two GPUs by index. `p2p`: whether the driver lets them read each other's memory."""

    a: int
    b: int
    kind: LinkKind
    num_nvlinks: int | None = None
    p2p: bool | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Everything. `arch_list`: what the installed torch was compiled for (`sm_90`);
    `nccl`: torch's NCCL version. `problems`: a sentence for each thing that could not be read."""

    format: int = 1
    t: float
    hardware: Hardware
    gpus: tuple[GpuState, ...] = ()
    links: tuple[Link, ...] = ()
    num_cores: int = 1
    omp_num_threads: int | None = None
    shm_total_bytes: int | None = None
    shm_free_bytes: int | None = None
    disk_free_bytes: int | None = None
    load_average: float | None = None
    free_ports: int | None = None
    arch_list: tuple[str, ...] = ()
    torch_cuda: str | None = None
    nccl: str | None = None
    variables: tuple[Variable, ...] = ()
    problems: tuple[str, ...] = ()
