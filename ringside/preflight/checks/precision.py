"""Whether the devices compute in the precision that is asked for.

GPUs before Ampere (compute capability 8.0) emulate bf16; the request is refused there.
"""

from __future__ import annotations

from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark
from ringside.words import say

CODE, ORDER = "precision", 20


def check(case: Case) -> Remark | None:
    if case.spec is None:
        return None
    wanted = case.spec.accelerate.mixed_precision
    chosen = [gpu for gpu in case.hardware.gpus if gpu.index in case.spec.gpu_ids]
    word = say(f"precision.{wanted}")
    unsaid = [gpu.index for gpu in chosen if gpu.compute_capability is None]
    if wanted == "bf16" and unsaid:
        return remark("unknown", "precision_unknown", ids=", ".join(map(str, unsaid)))
    return remark("fine", "precision_fine", precision=word)
