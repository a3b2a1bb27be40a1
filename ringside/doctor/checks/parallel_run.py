"""nn.DataParallel: one process copies the model to every GPU in each step.

Seen when the preset is data_parallel. Every step copies the model to all GPUs, scatters the images,
gathers the outputs and adds the gradients on the first GPU, and one interpreter launches for all of
them. At 64 images a GPU a ResNet-50 took 1,233 ms a step on two H200s: 104 images/s, against 2,917
on one GPU.
What to do: DDP, one process for each GPU; only the preset changes.
Sources: pytorch's forum 66495, pytorch#3917 and #5421, luyug/GC-DPR#2; measured for Ringside.
"""

from __future__ import annotations

from ringside.doctor.applying import ddp_at
from ringside.doctor.case import Case
from ringside.doctor.figures import efficiency_of, spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "PARALLEL-010"
CAUSE: Cause = "data_parallel"
ORDER = 11


def check(case: Case) -> Finding | None:
    spec = spec_of(case)
    if spec is None or spec.strategy != "data_parallel" or spec.num_devices < 2:
        return None
    known = efficiency_of(case)
    lost = None if known.efficiency_ratio is None else max(0.0, 1 - known.efficiency_ratio)
    evidence = [seen("strategy", "nn.DataParallel", "spec.json")]
    if known.value is not None:
        what = say("seen.speedup", value=known.value, n=spec.num_devices)
        evidence.append(seen("speed-up", what, "events.jsonl"))
    return finding_of(
        CODE,
        CAUSE,
        "high",
        share_ratio=lost,
        severity="critical",
        evidence=tuple(evidence),
        values={"num": spec.num_devices},
        remedy=Remedy(preset=ddp_at(spec)),
    )
