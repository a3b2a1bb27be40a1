"""FSDP is for memory, and this model has memory to spare.

Seen when FSDP shards a model that DDP would hold as well: what the run used, and the part of
parameters, gradients and the two moments of Adam that the other devices hold, 16(1-1/n) bytes a
parameter, stay below 90 % of a device's memory. Not with parameters on the host. FSDP moves the
parameters twice and the gradients once, 3(n-1)/n of their bytes per step; DDP moves the gradients
only, as 2(n-1)/n, and with a 16-bit hook half of that. ResNet-50 on two H200s over NVLink, batch
256: DDP 9,226 images/s, DDP compiled 12,802, FSDP 7,289 to 8,377, and FSDP saved 0.4 of 11.3 GiB.
What to do: DDP with a 16-bit hook. FSDP when parameters, gradients and optimizer do not fit.
Sources: DeepSpeed's ZeRO posts (1.5 times the traffic); the H200 figures were measured here.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of, wire_bytes
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "LINK-019"
CAUSE: Cause = "link"
ORDER = 67

FITS = 0.9
STATE_BYTES = 16  # of a parameter in fp32: itself, its gradient and the two moments of Adam
FSDP_PASSES, DDP_PASSES = 3, 2
BYTES = 4


def check(case: Case) -> Finding | None:
    spec, record = spec_of(case), case.record
    if spec is None or record is None or record.observed is None or spec.strategy != "fsdp":
        return None
    used = max((w.memory_bytes for w in record.windows if w.memory_bytes), default=None)
    total = _memory_of_a_device(case)
    config = spec.accelerate.fsdp_config
    if used is None or total is None or (config is not None and config.fsdp_offload_params):
        return None
    num, parameters = spec.num_processes, record.observed.num_parameters * BYTES
    need = used + STATE_BYTES * record.observed.num_parameters * (1 - 1 / num)
    if need >= FITS * total:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "high",
        severity="warning",
        evidence=(
            seen(
                "memory used",
                say("seen.memory", used=used / 2**30, total=total / 2**30),
                "events.jsonl",
            ),
            seen("DDP would use", f"{need / 2**30:.1f} GiB", say("seen.more_bytes")),
            seen("parameters", f"{record.observed.num_parameters:,}", "events.jsonl"),
            seen("sent a step by FSDP", _mb(wire_bytes(parameters, num, FSDP_PASSES)), "3(n-1)/n"),
            seen("sent a step by DDP", _mb(wire_bytes(parameters, num, DDP_PASSES)), "2(n-1)/n"),
        ),
        values={"need": need / total},
        remedy=Remedy(preset=_instead(spec.accelerate.mixed_precision)),
    )


def _instead(precision: str) -> str:
    return {"no": "ddp", "fp16": "ddp_fp16_compress"}.get(precision, "ddp_bf16_compress")


def _memory_of_a_device(case: Case) -> int | None:
    """Of the smallest GPU; None on a CPU, whose memory the processes share."""
    gpus = case.machine.hardware.gpus if case.machine is not None else ()
    return min((gpu.memory_total_bytes for gpu in gpus), default=None)


def _mb(num_bytes: float) -> str:
    return f"{num_bytes / 1e6:.1f} MB"
