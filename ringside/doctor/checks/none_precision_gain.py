"""A speed-up that holds the gain of 16 bits is not a speed-up of the devices.

Seen when a run in 16 bits has no baseline in the same precision. On one V100 AMP alone makes
ResNet-50 3.26 times as fast, so 1.68x with FSDP and AMP on four GPUs is less than AMP on one.
Ringside divides only by one device at the same precision and names the gain of 16 bits apart.
What to do: run `single` in the same precision; `ringside compare` then shows both factors.
Sources: NVIDIA/DeepLearningExamples, resnet50v1.5: FP32 367 to 2,855 images/s, AMP 1,200 to 8,322.
"""

from __future__ import annotations

from ringside.doctor.applying import request_command
from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.speedup import baseline_of
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "NONE-012"
CAUSE: Cause = "none"
ORDER = 112


def check(case: Case) -> Finding | None:
    spec, record = spec_of(case), case.record
    if spec is None or record is None or spec.num_devices < 2:
        return None
    base = case.baseline.spec if case.baseline is not None else None
    own = spec.accelerate.mixed_precision
    other = base.accelerate.mixed_precision if base is not None else None
    if own == "no" or other == own or record.steady_samples_per_s is None:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "high",
        severity="note",
        evidence=(
            seen("this run", own, "spec.json"),
            seen(
                "baseline", {None: say("seen.none"), "no": "fp32"}.get(other, other or ""), "runs"
            ),
        ),
        values={"precision": own, "command": request_command(baseline_of(spec))},
    )
