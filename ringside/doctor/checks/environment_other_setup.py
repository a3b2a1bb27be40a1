"""The set-up that ran is not the one that was asked for.

Seen when what the trainer read back differs from the request, in any field that the trainer itself
compares: processes, devices, strategy, precision (from a tensor inside the forward pass), how
gradients are reduced, layout, compilation, frozen parts, threads. Without this check a MULTI_GPU
file on a machine without GPUs runs two unrelated trainings, and FSDP silently becomes DDP. The
trainer refuses to train then; the finding explains a run that failed so, and catches one of an
older Ringside or of another trainer.
What to do: what the sentence names. Speeds and scores of such a run say nothing about its preset.
Sources: measured for Ringside with Accelerate 1.15.
"""

from __future__ import annotations

from ringside.agreement import asked_and_got
from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "ENVIRONMENT-011"
CAUSE: Cause = "environment"
ORDER = 1

# What the trainer's refusal begins with, on the way to `exit.json`.
REFUSAL = "The set-up that came is not the one asked for"


def check(case: Case) -> Finding | None:
    spec, record = spec_of(case), case.record
    if spec is None or record is None:
        return None
    said = record.failure.sentence if record.failure is not None else ""
    apart = _apart(case)
    if not apart and REFUSAL not in said:
        return None
    told = "; ".join(apart) or said
    return finding_of(
        CODE,
        CAUSE,
        "high",
        severity="critical",
        evidence=tuple(seen("asked and got", one, "events.jsonl") for one in apart),
        values={"what": told.rstrip(".")},
    )


def _apart(case: Case) -> list[str]:
    spec, observed = spec_of(case), case.record.observed if case.record is not None else None
    if spec is None or observed is None:
        return []
    pairs = asked_and_got(spec, observed)
    # None: a Ringside that did not look at this yet.
    return [
        say("seen.asked_and_got", name=name.replace("_", " "), asked=asked, got=got)
        for name, (asked, got) in pairs.items()
        if asked != got and not (got is None and asked is not None)
    ]
