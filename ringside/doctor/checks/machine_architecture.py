"""The installed torch holds no kernels for this GPU.

Seen when nothing in torch's list of architectures runs on the GPU: machine code (`sm_80`) runs on
GPUs of the same major version and the same or a higher minor one, `sm_90a` on exactly that GPU, and
PTX (`compute_90`) on every newer GPU, compiled at the first start.
What happens: the first kernel stops with `no kernel image is available for execution on the
device`.
What to do: install torch for a CUDA that knows the GPU, from the selector at pytorch.org.
Source: CUDA C++ Programming Guide, binary and PTX compatibility.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause

CODE = "MACHINE-006"
CAUSE: Cause = "environment"
ORDER = 10

Capability = tuple[int, int]


def check(case: Case) -> Finding | None:
    machine = case.machine
    if machine is None or not machine.arch_list:
        return None
    strange = [
        (gpu, gpu.compute_capability)
        for gpu in machine.hardware.gpus
        if gpu.compute_capability is not None
        and not any(runs_on(arch, gpu.compute_capability) for arch in machine.arch_list)
    ]
    if not strange:
        return None
    evidence = [
        seen(f"GPU {gpu.index}, {gpu.name}", "sm_{}{}".format(*capability), "NVML")
        for gpu, capability in strange
    ]
    evidence.append(seen("torch was built for", " ".join(machine.arch_list), "torch"))
    return finding_of(
        CODE,
        CAUSE,
        "high",
        severity="critical",
        evidence=tuple(evidence),
        values={
            "gpus": ", ".join(str(gpu.index) for gpu, _ in strange),
            "cuda": machine.torch_cuda or "?",
        },
    )


def runs_on(arch: str, capability: Capability) -> bool:
    """Whether code for `arch`, such as `sm_86`, `sm_90a` or `compute_90`, runs on the GPU."""
    kind, _, number = arch.partition("_")
    digits = number.rstrip("af")
    if kind not in ("sm", "compute") or not digits.isdecimal() or len(digits) < 2:
        return True  # an unknown word is no reason for an alarm
    built = int(digits[:-1]), int(digits[-1])
    if number.endswith("a"):
        return built == capability
    if kind == "compute":
        return built <= capability
    return built[0] == capability[0] and built[1] <= capability[1]
