"""Whether variables are left over that slow a run down; the table is `ringside.environment_lint`.

On a CPU those of NCCL and CUDA do nothing, and Ringside sets OMP_NUM_THREADS itself.
"""

from __future__ import annotations

from ringside.environment_lint import lint
from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark

CODE, ORDER = "environment", 60

IDLE_ON_CPU = ("NCCL_", "CUDA_", "TORCH_NCCL_", "OMP_NUM_THREADS")
# CUDA_VISIBLE_DEVICES and its order are set for each run, by physical GPU.
OURS = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
BAD_LEVELS = ("handicap", "leftover", "unknown")


def check(case: Case) -> Remark | None:
    added = case.spec.environment if case.spec else {}
    idle = IDLE_ON_CPU if case.hardware.device == "cpu" else OURS
    found = [
        one.sentence
        for one in lint({**case.environment, **added})
        if one.level in BAD_LEVELS and not one.name.startswith(idle)
    ]
    if found:
        return Remark("warning", " ".join(found))
    return remark("fine", "environment_fine")
