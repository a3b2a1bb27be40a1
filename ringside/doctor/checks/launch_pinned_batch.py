"""Accumulation with the global batch kept only makes each micro-step smaller.

Seen when a run accumulates micro-steps and was asked to keep its global batch. The bytes of an
optimizer step stay the same, and so do the images in it: it saves memory, not communication, and
more and smaller kernels take longer. At batch 512 over sockets 256 images a GPU took 60 ms, four
times 64 at least 110.
What to do: a larger batch per device first; then accumulation that multiplies the global batch,
with its learning-rate rule, and a look at the scores.
Sources: measured for Ringside on two H200s.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.trace.findings import Cause

CODE = "LAUNCH-012"
CAUSE: Cause = "launch"
ORDER = 93


def check(case: Case) -> Finding | None:
    spec = spec_of(case)
    if spec is None or not spec.keeps_global_batch or spec.strategy == "model_parallel":
        return None
    steps = spec.training.accumulation_steps
    if steps < 2:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "high",
        severity="warning",
        evidence=(
            seen("micro-steps", str(steps), "spec.json"),
            seen("images in one", str(spec.micro_batch), "spec.json"),
            seen("global batch", str(spec.global_batch), "spec.json"),
        ),
        values={"k": steps, "micro": spec.micro_batch, "whole": spec.micro_batch * steps},
        remedy=Remedy(preset=spec.preset, overrides={"accumulation_steps": "1"}),
    )
