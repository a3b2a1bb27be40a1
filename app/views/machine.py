"""The machine in one line, for the header of every page."""

from __future__ import annotations

from collections import Counter

from ringside.hardware import Hardware
from ringside.words import say

SHOWN_VERSIONS = ("torch", "accelerate")


def machine_lines(hardware: Hardware) -> tuple[str, str]:
    """What computes (`2 × NVIDIA H200 · 32 CPU cores`) and with what (`torch 2.14 · …`)."""
    counted = Counter(gpu.name for gpu in hardware.gpus)
    devices = [f"{n} × {name}" if n > 1 else name for name, n in counted.items()]
    cores = say("page.core" if hardware.num_cores == 1 else "page.cores", n=hardware.num_cores)
    versions = [
        f"{name} {_short(hardware.versions[name])}"
        for name in SHOWN_VERSIONS
        if name in hardware.versions
    ]
    return " · ".join([*devices, cores]), " · ".join(versions)


def _short(version: str) -> str:
    """Major and minor only: `2.14` of `2.14.1+cu130`."""
    return ".".join(version.partition("+")[0].split(".")[:2])
