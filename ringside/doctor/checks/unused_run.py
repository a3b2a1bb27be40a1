"""DDP looks for unused parameters in every step, and there are none.

Seen when the setting is on and every parameter got a gradient: DDP warns of it, and its own data
say so. It does not make the exchange synchronous, as is often said: it walks the graph in every
forward pass, exchanges a map of what was used, and keeps the first layout of buckets, so that the
first message starts late. Composer measured 4 to 5 %; under accumulation it costs one exchange more
per micro-step.
What to do: turn it off. If DDP then raises, parameters really are unused; where the same ones are
unused in every step, static_graph costs less.
Sources: torch/csrc/distributed/c10d/reducer.hpp; hamer#97, DAT#74, composer#9 and #48.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "UNUSED-010"
CAUSE: Cause = "unused_parameters"
ORDER = 81

WARNS = "did not find any unused parameters"


def check(case: Case) -> Finding | None:
    ddp = case.record.ddp if case.record is not None else None
    is_on = _is_on(case)
    if not is_on and WARNS not in case.console:
        return None
    unused = ddp.unused_parameter_bytes if ddp is not None else None
    if unused:
        return None  # it is needed
    evidence = [
        seen("find_unused_parameters", say("seen.on"), "events.jsonl" if is_on else "console.log")
    ]
    if WARNS in case.console:
        evidence.append(seen("DDP says", WARNS, "console.log"))
    if ddp is not None and ddp.has_rebuilt_buckets is not None:
        rebuilt = say("seen.yes" if ddp.has_rebuilt_buckets else "seen.no")
        evidence.append(seen("buckets laid out anew", rebuilt, "events.jsonl"))
    spec = spec_of(case)
    is_known = WARNS in case.console or unused == 0
    return finding_of(
        CODE,
        CAUSE,
        "high" if is_known else "medium",
        severity="warning",
        evidence=tuple(evidence),
        remedy=Remedy(
            preset=spec.preset if spec is not None else None,
            overrides={"find_unused_parameters": "false"},
        ),
    )


def _is_on(case: Case) -> bool:
    record, spec = case.record, spec_of(case)
    asked = spec is not None and spec.training.find_unused_parameters
    said = record is not None and record.ddp is not None and record.ddp.find_unused_parameters
    return asked or bool(said)
