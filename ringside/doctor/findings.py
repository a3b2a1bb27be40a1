"""What a check says, with everything a verdict card shows."""

from __future__ import annotations

from typing import Literal

import msgspec

from ringside.trace.findings import Cause, Confidence

Severity = Literal["critical", "warning", "note"]
"""critical: 20 % of the step or more, or wrong results; warning: 10 % or more, or a handicap whose
cost is not measured; note: good to know."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One figure or fact; `source` names the file or the probe it was read from."""

    label: str
    value: str
    source: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One cause, in the words of a verdict card.

    `share_ratio`: of the step's wall time, None where it is not measured. `gain_ratio`: an upper
    bound of what removing the cause saves of the step; None: not known. `refutation`: the
    experiment that would show the finding to be wrong. `next_step`: what to do. `preset` and
    `overrides`: what the button Apply puts into the form; None: there is nothing to apply.
    `unset`: variables of the environment that the same request should run without.
    """

    code: str
    cause: Cause
    severity: Severity
    sentence: str
    evidence: tuple[Evidence, ...] = ()
    share_ratio: float | None = None
    gain_ratio: float | None = None
    confidence: Confidence
    refutation: str
    next_step: str
    preset: str | None = None
    overrides: dict[str, str] = {}
    unset: tuple[str, ...] = ()


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict, and what else was found, in the order in which to look at it.

    `missing`: what was not measured, each with the command that would measure it.
    """

    format: int = 1
    verdict: Finding
    others: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()
