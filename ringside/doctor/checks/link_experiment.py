"""Without the exchange of gradients the step is shorter, and the link explains it.

Seen when the step with the all-reduce left out is shorter than the whole one by 10 % of it or more
and by more than the spread of the blocks, and the messages alone need a quarter of that by the
sweep, or nobody swept. No profiler runs and nothing is guessed: the exchange was taken away and the
step timed. Waiting for a late rank is in the difference; what the backward pass hides is not.
What to do: a way that is shut first (LINK-011 to LINK-015); then fewer bytes or fewer exchanges.
Sources: the arms are those of `ringside.measurements.attribution`; TraceML's bands.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.experiments import answer_of, attributed, parts_shown, surely
from ringside.doctor.figures import alone_us
from ringside.doctor.findings import Finding
from ringside.doctor.gains import fewer_bytes_of
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause

CODE = "LINK-002"
CAUSE: Cause = "link"
ORDER = 59

EXPLAINS = 0.25


def check(case: Case) -> Finding | None:
    found = attributed(case)
    part = found.communication if found is not None else None
    if found is None or part is None or answer_of(part) != "costs":
        return None
    alone = alone_us(case)
    if alone is not None and alone / 1000 < EXPLAINS * part.ms:
        return None
    evidence = parts_shown(found)
    if alone is not None:
        evidence += (seen("messages alone", f"{alone / 1000:.2f} ms", "sweep"),)
    return finding_of(
        CODE,
        CAUSE,
        surely(part) if alone is not None else "medium",
        share_ratio=part.share_ratio,
        evidence=evidence,
        values={"ms": part.ms, "spread": part.spread_ms},
        remedy=fewer_bytes_of(case),
    )
