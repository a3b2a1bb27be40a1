"""From a code and its figures to a finding in the words of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringside.doctor.bands import WARNING, severity_of
from ringside.doctor.findings import Evidence, Finding, Severity
from ringside.trace import RankFacts
from ringside.trace.findings import Cause, Confidence
from ringside.words import say, translated

SENTENCES = ("", "_refutation", "_next")


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What the button Apply fills in, and the most that it can save of the step, if that differs
    from the share of the cause. `unset`: variables to run without."""

    preset: str | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    gain_ratio: float | None = None
    unset: tuple[str, ...] = ()


def finding_of(
    code: str,
    cause: Cause,
    confidence: Confidence,
    *,
    share_ratio: float | None = None,
    severity: Severity | None = None,
    evidence: tuple[Evidence, ...] = (),
    values: dict[str, Any] | None = None,
    remedy: Remedy | None = None,
) -> Finding:
    """A finding whose three sentences stand in the words as `doctor.CODE`, with `_refutation` and
    `_next` behind it; `values`, `share` and `cost` (a sentence about the share) fill all of them.

    Without `severity` it follows from the share, a warning where there is none.
    """
    remedy = remedy or Remedy()
    filled = {"share": share_ratio, "cost": cost_of(share_ratio), **(values or {})}
    sentence, refutation, next_step = (
        say(f"doctor.{key_of(code)}{end}", **filled) for end in SENTENCES
    )
    return Finding(
        code=code,
        cause=cause,
        severity=severity or severity_of(share_ratio),
        sentence=sentence,
        evidence=evidence,
        share_ratio=share_ratio,
        gain_ratio=share_ratio if remedy.gain_ratio is None else remedy.gain_ratio,
        confidence=confidence,
        refutation=refutation,
        next_step=next_step,
        preset=remedy.preset,
        overrides=remedy.overrides,
        unset=remedy.unset,
    )


def cost_of(share_ratio: float | None) -> str:
    """What a cause costs at most, or that nobody measured it."""
    if share_ratio is None:
        return say("doctor.cost_unknown")
    return say("doctor.cost" if share_ratio >= WARNING else "doctor.cost_small", share=share_ratio)


def key_of(code: str) -> str:
    """`LINK-001` as a key of the words: `link_001`."""
    return code.lower().replace("-", "_")


def file_of(rank: RankFacts) -> str:
    """The file of a rank's trace with its folder, such as `trace/rank0.json.gz`."""
    return "/".join(Path(rank.file).parts[-2:])


def seen(label: str, value: str, source: str) -> Evidence:
    """One line of evidence; `label` is English, and said in the language where it has it."""
    return Evidence(label=translated(f"evidence.{label}", label), value=value, source=source)
