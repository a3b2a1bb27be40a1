"""A GPU's PCIe link is trained down although it is busy.

Seen when the generation or the number of lanes is below what GPU and slot can do while a copy to
the GPU runs. Without a copy nothing is said: an idle link is trained down to save power.
What to do: seat the card and its riser again, look for a slot with fewer lanes, and for a limit in
the firmware. `lspci -vv` (as root) shows LnkCap beside LnkSta.
Sources: janhq/jan#183 (2.5 GT/s at rest), NVIDIA/nccl#428 (a virtual machine hides the width).
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Evidence, Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.machine import GpuState
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "MACHINE-003"
CAUSE: Cause = "link"
ORDER = 62


def check(case: Case) -> Finding | None:
    gpus = case.machine.gpus if case.machine else ()
    down = [gpu for gpu in gpus if _is_down(gpu)]
    if not down:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "high",
        evidence=tuple(_evidence(gpu) for gpu in down),
        values={"gpus": ", ".join(str(gpu.index) for gpu in down)},
    )


def _is_down(gpu: GpuState) -> bool:
    pairs = (
        (gpu.pcie_generation, gpu.max_pcie_generation),
        (gpu.pcie_width, gpu.max_pcie_width),
    )
    return gpu.is_pcie_loaded and any(now and most and now < most for now, most in pairs)


def _evidence(gpu: GpuState) -> Evidence:
    now, most = (
        f"{generation} x{width}"
        for generation, width in (
            (gpu.pcie_generation, gpu.pcie_width),
            (gpu.max_pcie_generation, gpu.max_pcie_width),
        )
    )
    value = say("seen.pcie", now=now, most=most)
    if gpu.copy_bytes_per_s is not None:
        value = say("seen.from_host", value=value, rate=gpu.copy_bytes_per_s / 1e9)
    return seen(f"GPU {gpu.index}", value, say("seen.while_copying"))
