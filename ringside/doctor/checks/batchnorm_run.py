"""BatchNorm is synchronised although each device has images enough of its own.

Seen when SyncBatchNorm is on with 16 images per device or more. Every layer then waits for a small
exchange, forward and backward, which blocks the host too: ResNet-50 has 53 such layers, and a
rewrite of it cost one user about 30 %. It helps where a device has so few images that their mean
and variance are poor.
What to do: plain BatchNorm; compare the scores.
Sources: pytorch#36452, NVIDIA/apex#980. That 16 are enough: Wu and He 2018, arXiv:1803.08494, in
whose figure 1 the error of BatchNorm on ImageNet grows below 16 images a device.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "BATCHNORM-010"
CAUSE: Cause = "sync_batchnorm"
ORDER = 21

ENOUGH = 16


def check(case: Case) -> Finding | None:
    spec, record = spec_of(case), case.record
    if spec is None or record is None or record.observed is None:
        return None
    if not record.observed.sync_batchnorm or spec.micro_batch < ENOUGH:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        severity="warning",
        evidence=(
            seen("images per device", str(spec.micro_batch), "spec.json"),
            seen("SyncBatchNorm", say("seen.on"), "events.jsonl"),
        ),
        values={"batch": spec.micro_batch},
        remedy=Remedy(preset=spec.preset, overrides={"sync_batchnorm": "false"}),
    )
