"""The GPUs to choose from, with who uses them; NVML is asked in the background.

A driver may take seconds to answer, so a handler takes what is known and never waits.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from app.views import figures
from ringside.hardware import Gpu, Hardware
from ringside.launch.claims import Claims
from ringside.machine import GpuState, Process
from ringside.machine.gpus import read_gpu
from ringside.machine.nvml import open_nvml
from ringside.words import say

log = logging.getLogger("ringside.page")

FRESH_S = 4.0
GIB = 2**30


class GpuWatch:
    """The last answer of NVML for the GPUs of this machine; safe to use from many threads."""

    def __init__(
        self, hardware: Hardware, ask: Callable[[Hardware], tuple[GpuState, ...]] | None = None
    ) -> None:
        self.hardware = hardware
        self._ask = ask or states_now
        self._lock = threading.Lock()
        self._states: tuple[GpuState, ...] = ()
        self._asked_at = -FRESH_S
        self._is_asking = False

    def states(self) -> tuple[GpuState, ...]:
        """What is known now, empty before the first answer; asks again when that is old."""
        if not self.hardware.gpus:
            return ()
        with self._lock:
            is_old = time.monotonic() - self._asked_at > FRESH_S
            if is_old and not self._is_asking:
                self._is_asking = True
                threading.Thread(target=self._look, daemon=True).start()
            return self._states

    def _look(self) -> None:
        found: tuple[GpuState, ...] = ()
        try:
            found = self._ask(self.hardware)
        except Exception:  # whatever a driver does, the page goes on with what it knew
            log.exception("The GPUs could not be read")
        with self._lock:
            self._states = found or self._states
            self._asked_at, self._is_asking = time.monotonic(), False


def states_now(hardware: Hardware) -> tuple[GpuState, ...]:
    """What NVML says of each GPU; one that it refuses is left out."""
    with open_nvml(hardware, []) as handles:
        return tuple(
            read_gpu(gpu, handles[gpu.index]) for gpu in hardware.gpus if gpu.index in handles
        )


def gpu_choices(
    hardware: Hardware, root: Path, states: tuple[GpuState, ...]
) -> list[tuple[str, int]]:
    """(`GPU 0 · NVIDIA H200 · 141 GB · used by amber-fox (yours)`, 0) for every GPU."""
    claims = Claims(root).read() if hardware.gpus else []
    known = {state.index: state for state in states}
    choices = []
    for gpu in hardware.gpus:
        holding = (c for c in claims if gpu.index in c.devices and not c.is_waiting)
        runs = [_run_words(root, claim.run_id, claim.name) for claim in holding]
        choices.append((_label(gpu, known.get(gpu.index), runs), gpu.index))
    return choices


def _run_words(root: Path, run_id: str, name: str) -> str:
    """A run by name, and whether it is of the person whose server this is."""
    with suppress(OSError):
        if (root / run_id).stat().st_uid == os.getuid():
            return say("gpu.yours", name=name)
    return name


def _label(gpu: Gpu, state: GpuState | None, runs: list[str]) -> str:
    parts = [say("gpu.name", index=gpu.index, name=gpu.name)]
    parts.append(figures.size(gpu.memory_total_bytes))
    foreign = [one for one in state.processes if not one.is_ours] if state else []
    uses = [say("gpu.used_by", who=run) for run in runs] + [_foreign(one) for one in foreign]
    if not uses:
        uses = [say("gpu.free" if state else "gpu.unknown")]
    return " · ".join([*parts, *uses])


def _foreign(process: Process) -> str:
    who = process.name or say("gpu.process", pid=process.pid)
    if process.user:
        who = f"{who} ({process.user})"
    if process.memory_bytes is None:
        return say("gpu.used_by", who=who)
    return say("gpu.used_with", who=who, size=figures.size(process.memory_bytes))
