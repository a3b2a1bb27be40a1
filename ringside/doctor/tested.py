"""The experiment decides against a trace: it took the input or the exchange away and timed it."""

from __future__ import annotations

import msgspec

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.figures import EXPERIMENT, attributed, surely
from ringside.doctor.findings import Evidence, Finding
from ringside.measurements.attribution import Attribution, Part
from ringside.trace.findings import Confidence
from ringside.words import say


def tested(finding: Finding, case: Case) -> Finding:
    """The finding, surer where the experiment agrees, of low confidence where it does not.

    Only where the experiment measured that cause, and the finding is not the experiment's own.
    """
    found = attributed(case)
    part = _part_for(finding, found) if found is not None else None
    if part is None or finding.share_ratio is None or finding.severity == "note":
        return finding
    if any(one.source == EXPERIMENT for one in finding.evidence):
        return finding
    agrees = part.state == "measured" and part.share_ratio >= WARNING
    told = Evidence(
        label=say("doctor.tested"),
        value=say(
            "doctor.tested_agrees" if agrees else "doctor.tested_contradicts",
            share=part.share_ratio, spread_ms=part.spread_ms, ms=part.ms,
        ),
        source=EXPERIMENT,
    )  # fmt: skip
    sure: Confidence = "low"
    if agrees:
        sure = "high" if "high" in (surely(part), finding.confidence) else "medium"
    return msgspec.structs.replace(finding, confidence=sure, evidence=(told, *finding.evidence))


def _part_for(finding: Finding, found: Attribution) -> Part | None:
    return {"link": found.communication, "data": found.input}.get(finding.cause)
