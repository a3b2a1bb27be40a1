"""Whether the run fits into the memory that its GPUs have free, by what was measured here."""

from __future__ import annotations

from ringside.errors import RingsideError
from ringside.estimate import estimate, inputs_for
from ringside.machine import GpuState
from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark
from ringside.spec import RunSpec

CODE, ORDER = "memory", 45

GIB = 2**30


def check(case: Case) -> Remark | None:
    spec = case.spec
    if spec is None or spec.device != "cuda":
        return None  # a CPU's peak is not measured
    predicted = _predicted(case, spec)
    chosen = [state for state in _states(case) if state.index in spec.gpu_ids]
    if not chosen:
        return None
    tightest = min(chosen, key=lambda state: _free(state, waits=_waits(case)))
    free = _free(tightest, waits=_waits(case))
    if predicted is None:
        return remark("unknown", "memory_unknown", model=spec.model, free=free / GIB)
    values = {"need": predicted / GIB, "free": free / GIB, "index": tightest.index}
    if predicted > free:
        return remark("warning", "memory_small", **values)
    return remark("fine", "memory_fine", **values)


def _predicted(case: Case, spec: RunSpec) -> int | None:
    try:
        inputs = inputs_for(spec, case.hardware, case.root, is_hurried=True)
        return estimate(spec, inputs).memory_bytes
    except (RingsideError, OSError, ValueError, ArithmeticError, LookupError):
        return None  # a prediction is an extra


def _states(case: Case) -> tuple[GpuState, ...]:
    """The GPUs now; where nobody has looked, as they were when the hardware was read."""
    return case.gpus or tuple(
        GpuState(
            index=gpu.index, name=gpu.name, memory_used_bytes=gpu.memory_used_bytes,
            memory_total_bytes=gpu.memory_total_bytes,
        )
        for gpu in case.hardware.gpus
    )  # fmt: skip


def _waits(case: Case) -> bool:
    return case.request.queue


def _free(state: GpuState, *, waits: bool) -> int:
    """Bytes that a run will find; one that waits in the queue finds those of our runs free."""
    used = state.memory_used_bytes or 0
    if waits:
        used -= sum(one.memory_bytes or 0 for one in state.processes if one.is_ours)
    return (state.memory_total_bytes or 0) - max(0, used)
