"""Accumulation reduces the gradients in every micro-step instead of once.

Seen when the process group issued k times as many collectives per optimizer step as DDP has
buckets, with k micro-steps and three buckets or more (with fewer, the exchange of buffers in each
forward pass could be taken for it), and without synchronised BatchNorm, which has its own.
`no_sync` has to be around forward *and* backward: around the backward pass alone it does nothing.
Done right, two nodes went from 2.0 to 0.91 s per batch, a single node from 0.50 to 0.41.
What to do: `accelerator.accumulate`, or `no_sync` around all micro-steps but the last.
Sources: Accelerate's guide to gradient synchronisation, speechbrain#1802, accelerate#1244.
"""

from __future__ import annotations

from statistics import median

from ringside.doctor.case import Case
from ringside.doctor.figures import bucket_bytes, spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.trace.findings import Cause

CODE = "LINK-018"
CAUSE: Cause = "link"
ORDER = 60


FEWEST = 3


def check(case: Case) -> Finding | None:
    spec, record, buckets = spec_of(case), case.record, bucket_bytes(case)
    if spec is None or record is None or spec.strategy != "ddp" or len(buckets) < FEWEST:
        return None
    if spec.training.sync_batchnorm:
        return None
    micro_steps = spec.training.accumulation_steps
    counts = [e.collectives_per_step for e in record.epochs if e.collectives_per_step is not None]
    if micro_steps < 2 or not counts or median(counts) < micro_steps * len(buckets):
        return None
    exposed = transfer_share(case)
    return finding_of(
        CODE,
        CAUSE,
        "high",
        share_ratio=exposed,
        severity=None if exposed is not None else "critical",
        evidence=(
            seen("collectives an optimizer step", f"{median(counts):.0f}", "events.jsonl"),
            seen("buckets of DDP", str(len(buckets)), "events.jsonl"),
            seen("micro-steps", str(micro_steps), "spec.json"),
        ),
        values={"num": median(counts), "k": micro_steps, "buckets": len(buckets)},
        remedy=Remedy(gain_ratio=None if exposed is None else exposed * (1 - 1 / micro_steps)),
    )
