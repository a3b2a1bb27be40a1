"""A GPU's clocks are held down by heat or by its power supply.

Seen when NVML names a slowdown by hardware, by temperature or by the power brake. "idle", the power
cap and application clocks are no such reason: the first is rest, and a GPU under full load reaches
its power cap as designed. A step waits for the slowest GPU, so one hot GPU holds back all ranks.
What to do: look at its temperature and fans, its power cable and the supply; `nvidia-smi -q -d
PERFORMANCE,TEMPERATURE,POWER` shows more.
Of a run it is said when the machine was looked at within an hour of it.
Sources: nvml.h, nvmlClocksEventReasons; mlfoundations/open_clip#703 (power brake), pytorch#85334
(a power cable).
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Evidence, Finding
from ringside.doctor.looking import looked_in_time
from ringside.doctor.phrasing import finding_of, seen
from ringside.machine import GpuState
from ringside.samples import reason_told
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "MACHINE-002"
CAUSE: Cause = "environment"
ORDER = 95

SLOWED = frozenset({
    "hardware slowdown", "software thermal slowdown", "hardware thermal slowdown", "power brake",
})  # fmt: skip


def check(case: Case) -> Finding | None:
    gpus = case.machine.gpus if case.machine and looked_in_time(case) else ()
    slow = [gpu for gpu in gpus if SLOWED & set(gpu.throttle_reasons)]
    if not slow:
        return None
    reasons = sorted({why for gpu in slow for why in gpu.throttle_reasons if why in SLOWED})
    return finding_of(
        CODE,
        CAUSE,
        "high",
        evidence=tuple(_evidence(gpu) for gpu in slow),
        values={
            "gpus": ", ".join(str(gpu.index) for gpu in slow),
            "reasons": ", ".join(map(reason_told, reasons)),
        },
    )


def _evidence(gpu: GpuState) -> Evidence:
    parts = [", ".join(map(reason_told, gpu.throttle_reasons))]
    if gpu.sm_clock_mhz is not None and gpu.max_sm_clock_mhz is not None:
        parts.append(say("seen.clock", now=gpu.sm_clock_mhz, most=gpu.max_sm_clock_mhz))
    if gpu.temperature_c is not None:
        parts.append(f"{gpu.temperature_c:.0f} °C")
    return seen(f"GPU {gpu.index}", ", ".join(parts), "NVML")
