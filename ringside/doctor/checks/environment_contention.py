"""The devices hold each other up even without exchanging anything.

Seen when the step of all processes with the exchange left out is longer than that of one process,
at equal images per device, by 10 % of the step or more and by more than the spread. They share
something then: cores, memory bandwidth, PCIe, a disk, power or heat. The cost of the wrapper (DDP)
is in the difference too, and so is that the slowest of several is slower than one.
What to do: fewer threads or workers per process, cores bound to each process, clocks under load.
Sources: the arms are those of `ringside.measurements.attribution`; TraceML's bands.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.experiments import answer_of, attributed, parts_shown
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of
from ringside.trace.findings import Cause

CODE = "ENVIRONMENT-013"
CAUSE: Cause = "environment"
ORDER = 88


def check(case: Case) -> Finding | None:
    found = attributed(case)
    part = found.contention if found is not None else None
    if found is None or part is None or answer_of(part) != "costs":
        return None
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        share_ratio=part.share_ratio,
        evidence=parts_shown(found),
        values={"ms": part.ms, "spread": part.spread_ms},
    )
