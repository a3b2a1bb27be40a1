"""The parts of the experiment do not add up to the step.

Seen when what is left of the step after the bare work, the exchange and the images is 10 % of it or
more, either way, and more than the spread. Above zero each of the two hides behind the other, so
that only leaving out both makes the step shorter; below zero they share time that leaving out
either would save.
What to do: remove the larger of the two and measure again.
Sources: `ringside.measurements.attribution`; the 2x2 of arms predicts its fourth by adding up.
"""

from __future__ import annotations

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.experiments import attributed, parts_shown
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of
from ringside.trace.findings import Cause

CODE = "UNEXPLAINED-011"
CAUSE: Cause = "unexplained"
ORDER = 95


def check(case: Case) -> Finding | None:
    found = attributed(case)
    part = found.unexplained if found is not None else None
    if found is None or part is None or part.state == "within_noise":
        return None
    if abs(part.share_ratio) < WARNING:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        share_ratio=abs(part.share_ratio),
        evidence=parts_shown(found),
        values={"ms": part.ms, "spread": part.spread_ms},
    )
