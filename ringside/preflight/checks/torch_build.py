"""Whether torch is here, and made for the GPUs of this machine."""

from __future__ import annotations

from ringside.preflight.case import Case
from ringside.preflight.items import Remark, remark

CODE, ORDER = "torch", 10


def check(case: Case) -> Remark | None:
    if not case.hardware.versions:
        return None  # nobody looked
    version = case.hardware.versions.get("torch")
    if version is None:
        return remark("error", "torch_absent")
    if case.hardware.gpus and "+cpu" in version:
        return remark("error", "torch_cpu", version=version, n=len(case.hardware.gpus))
    return None
