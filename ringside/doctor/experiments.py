"""What the controlled experiment says of a case: its parts, and whether they decide anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.findings import Evidence
from ringside.trace.findings import Confidence
from ringside.words import percent, say

if TYPE_CHECKING:
    from ringside.measurements.attribution import Attribution, Part

EXPERIMENT = "experiment"

Answer = Literal["costs", "costs nothing", "cannot tell"]


def attributed(case: Case) -> Attribution | None:
    """What the experiment says of the step; None where there is none or its main arm failed."""
    if case.experiment is None:
        return None
    from ringside.measurements.attribution import attribution

    found = attribution(case.experiment)
    return found if found.step_ms is not None else None


def answer_of(part: Part) -> Answer:
    """costs: a tenth of the step or more, and more than the spread. costs nothing: less than that
    even at the upper end of its spread. Else the arms spread too far to tell."""
    if part.state == "measured" and part.share_ratio >= WARNING:
        return "costs"
    spread = part.spread_ms * abs(part.share_ratio / part.ms) if part.ms else 0.0
    return "costs nothing" if part.share_ratio + spread < WARNING else "cannot tell"


def exchange_share(case: Case) -> float | None:
    """What the exchange costs of the step where the experiment decided it; 0 for no cost."""
    found = attributed(case)
    part = found.communication if found is not None else None
    if part is None or answer_of(part) == "cannot tell":
        return None
    return max(0.0, part.share_ratio)


def surely(part: Part) -> Confidence:
    """high: the difference is twice its spread or more; medium: it only exceeds it."""
    return "high" if part.ms >= 2 * part.spread_ms else "medium"


def parts_shown(found: Attribution) -> tuple[Evidence, ...]:
    """All parts of the experiment with their spread; what is unexplained too."""
    step = f"{found.step_ms:.1f} ± {found.step_spread_ms:.1f} ms"
    parts = (
        Evidence(
            label=say(f"doctor.experiment_{part.name}"),
            value=f"{part.ms:.1f} ± {part.spread_ms:.1f} ms, {percent(part.share_ratio)}",
            source=EXPERIMENT,
        )
        for part in found.parts
    )
    return (Evidence(label=say("doctor.experiment_step"), value=step, source=EXPERIMENT), *parts)
