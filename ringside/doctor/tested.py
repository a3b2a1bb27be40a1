"""The experiment decides against a trace: it took the input or the exchange away and timed it."""

from __future__ import annotations

import msgspec

from ringside.doctor.bands import severity_of
from ringside.doctor.case import Case
from ringside.doctor.experiments import EXPERIMENT, Answer, answer_of, attributed, surely
from ringside.doctor.findings import Evidence, Finding
from ringside.measurements.attribution import Part
from ringside.words import say

# What a trace or a clock took for the cost of the exchange, and of images.
_PART_OF = {
    "LINK-001": "communication", "LINK-003": "communication",
    "DATA-001": "input", "DATA-010": "input",
}  # fmt: skip
_WORDS: dict[Answer, str] = {
    "costs": "agrees", "costs nothing": "contradicts", "cannot tell": "undecided",
}  # fmt: skip


def tested(finding: Finding, case: Case) -> Finding:
    """The finding with what the experiment measured of its cause, where it measured that.

    Where it agrees, its share stands and the finding is surer; where it does not, the finding is a
    note without a command. The other findings of a link take its share from the start.
    """
    found = attributed(case)
    part = getattr(found, _PART_OF.get(finding.code, ""), None)
    if part is None:
        return finding
    answer = answer_of(part)
    told = Evidence(
        label=say("doctor.tested"),
        value=say(
            f"doctor.tested_{_WORDS[answer]}",
            share=part.share_ratio, spread_ms=part.spread_ms, ms=part.ms,
        ),
        source=EXPERIMENT,
    )  # fmt: skip
    finding = msgspec.structs.replace(finding, evidence=(told, *finding.evidence))
    if answer == "costs":
        return _agreed(finding, part)
    return _refuted(finding, part) if answer == "costs nothing" else finding


def _agreed(finding: Finding, part: Part) -> Finding:
    """What its command gains of a link is bound from the experiment's share already."""
    is_sure = "high" in (surely(part), finding.confidence)
    gain = finding.gain_ratio if finding.cause == "link" else part.share_ratio
    return msgspec.structs.replace(
        finding, share_ratio=part.share_ratio, severity=severity_of(part.share_ratio),
        gain_ratio=gain, confidence="high" if is_sure else "medium",
    )  # fmt: skip


def _refuted(finding: Finding, part: Part) -> Finding:
    return msgspec.structs.replace(
        finding, share_ratio=max(0.0, part.share_ratio), severity="note", gain_ratio=0.0,
        confidence="low", preset=None, overrides={}, unset=(),
    )  # fmt: skip
