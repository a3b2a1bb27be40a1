"""What this machine has: GPUs, cores, memory, versions. Works without a GPU and without torch."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import msgspec

from ringside.cores import num_cores
from ringside.errors import RingsideError, SpecError
from ringside.spec import Device
from ringside.words import say

PACKAGES = ("torch", "torchvision", "accelerate", "timm", "gradio")


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU by physical index (PCI bus order, as `nvidia-smi` counts).

    `compute_capability` is NVIDIA's (major, minor), such as (9, 0) of an H200.
    """

    index: int
    name: str
    uuid: str
    memory_total_bytes: int
    memory_used_bytes: int
    compute_capability: tuple[int, int] | None = None


class Hardware(msgspec.Struct, frozen=True, kw_only=True):
    """The machine at one moment; stored with every run."""

    format: int = 1
    gpus: tuple[Gpu, ...] = ()
    num_cores: int = 1
    memory_bytes: int | None = None
    driver: str | None = None
    system: str = ""
    python: str = ""
    versions: dict[str, str] = {}
    visible_devices: str | None = None

    @property
    def device(self) -> Device:
        """The kind of device a run uses here."""
        return "cuda" if self.gpus else "cpu"

    def num_devices(self, threads_per_device: int = 1) -> int:
        """GPUs, or on a machine without any, processes of `threads_per_device` threads each."""
        return len(self.gpus) or max(1, self.num_cores // threads_per_device)


def read_hardware() -> Hardware:
    """Look at the machine now (tens of milliseconds)."""
    refuse_windows()
    driver, gpus = _read_gpus()
    return Hardware(
        gpus=gpus,
        num_cores=num_cores(),
        memory_bytes=_memory_bytes(),
        driver=driver,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        versions=_versions(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
    )


def choose_gpus(ids: tuple[int, ...] | None, hardware: Hardware) -> tuple[Gpu, ...]:
    """The GPUs of these physical indices in the same order, all for None; SpecError for others."""
    if ids is None:
        return hardware.gpus
    known = {gpu.index: gpu for gpu in hardware.gpus}
    if not known:
        raise SpecError(say("request.no_gpus_here"))
    wrong = next((i for i in ids if i not in known), None)
    if wrong is not None or not ids:
        mask = hardware.visible_devices
        seen = "" if mask is None else say("request.visible", mask=mask)
        key = "request.no_gpu_chosen" if wrong is None else "request.no_such_gpu"
        raise SpecError(say(key, wrong=wrong, seen=seen, known=", ".join(map(str, known))))
    twice = next((i for i in ids if ids.count(i) > 1), None)
    if twice is not None:
        raise SpecError(say("request.gpu_twice", twice=twice))
    return tuple(known[i] for i in ids)


def refuse_windows() -> None:
    """Ringside needs POSIX sessions and signals."""
    if sys.platform == "win32":
        raise RingsideError("Ringside runs on Linux (and macOS on CPU); on Windows use WSL.")


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _read_gpus() -> tuple[str | None, tuple[Gpu, ...]]:
    """Driver version and the GPUs that CUDA_VISIBLE_DEVICES leaves visible."""
    try:
        import pynvml
    except ImportError:
        return None, ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None, ()
    try:
        gpus = [_read_gpu(i) for i in range(pynvml.nvmlDeviceGetCount())]
        driver = pynvml.nvmlSystemGetDriverVersion()
    except pynvml.NVMLError:
        return None, ()
    finally:
        pynvml.nvmlShutdown()
    return driver, tuple(_visible(gpus, os.environ.get("CUDA_VISIBLE_DEVICES")))


def _read_gpu(index: int) -> Gpu:
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(
        index=index,
        name=pynvml.nvmlDeviceGetName(handle),
        uuid=pynvml.nvmlDeviceGetUUID(handle),
        memory_total_bytes=int(memory.total),
        memory_used_bytes=int(memory.used),
        compute_capability=_read_capability(handle),
    )


def _read_capability(handle: object) -> tuple[int, int] | None:
    """What a GPU's cores can do; None where the driver cannot say."""
    import pynvml

    try:
        major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    except pynvml.NVMLError:
        return None
    return int(major), int(minor)


def _visible(gpus: list[Gpu], mask: str | None) -> list[Gpu]:
    """Apply CUDA's rule: listed order, indices or UUIDs, and nothing after the first unknown."""
    if mask is None:
        return gpus
    visible: list[Gpu] = []
    for entry in (part.strip() for part in mask.split(",")):
        match = [g for g in gpus if str(g.index) == entry or (entry and g.uuid.startswith(entry))]
        if not match:
            break
        visible.append(match[0])
    return visible
