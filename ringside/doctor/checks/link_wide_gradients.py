"""The computation is in 16 bits and the gradients still cross the wire in 32.

Seen when DDP runs under autocast without a communication hook, one rank hands 4 bytes or more per
parameter to the reduction, and the exposed transfer is 10 % of the step or more. Autocast shrinks
no traffic: it makes the computation shorter and the same bytes weigh more (on eight V100 the
efficiency falls from 97 to 87 %). A hook casts before the exchange; for FSDP it is reduce_dtype.
What to do: a 16-bit hook, which halves the bytes. It rounds the gradients: compare the scores.
Sources: measured with and without bf16 autocast, both 14.77 MB, and 7.39 MB for a bf16 model;
NVIDIA/DeepLearningExamples, resnet50v1.5.
"""

from __future__ import annotations

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.gains import fewer_bytes_of
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.doctor.ticks import BYTES_PER_FP32, bytes_per_gradient
from ringside.trace.findings import Cause
from ringside.words import percent, say

CODE = "LINK-020"
CAUSE: Cause = "link"
ORDER = 68


def check(case: Case) -> Finding | None:
    spec, share, width = spec_of(case), transfer_share(case), bytes_per_gradient(case)
    if case.record is None or case.record.observed is None or spec is None or width is None:
        return None
    observed = case.record.observed
    if observed.mixed_precision == "no" or observed.comm_hook != "no" or spec.strategy != "ddp":
        return None
    if width < BYTES_PER_FP32 or share is None or share < WARNING:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "high",
        share_ratio=share,
        evidence=(
            seen("computed in", observed.mixed_precision, "events.jsonl"),
            seen("bytes per gradient", f"{width:.2g}", "events.jsonl"),
            seen("exposed transfer", say("seen.of_step", share=percent(share)), "trace"),
        ),
        values={"precision": observed.mixed_precision, "width": width},
        remedy=fewer_bytes_of(case),
    )
