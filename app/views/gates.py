"""The quality gate in words: a sign, two words, and a sentence with the numbers behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.views import figures
from app.views.naming import short_name
from ringside.compare import ComparedRun
from ringside.scores import Interval, Metric
from ringside.words import catalogue, say

Tone = Literal["good", "bad", "warn", "plain"]
SIGNS = {"held": "✓", "worse": "✕", "undecided": "?", "unknown": "–", "reference": "●"}
TONES: dict[str, Tone] = {"held": "good", "worse": "bad", "undecided": "warn"}


@dataclass(frozen=True)
class GateLine:
    """One run's verdict; `tone` only repeats in colour what sign and word say."""

    run: str
    sign: str
    word: str
    sentence: str
    tone: Tone


def gate_line(
    run: ComparedRun, reference: str, *, is_waiting: bool = False, has_failed: bool = False
) -> GateLine:
    """The verdict on a run against the run with the id `reference`.

    `is_waiting`: the noise is still being worked out, and there is no verdict before;
    `has_failed`: it could not be.
    """
    if is_waiting:
        sentence = say("compare.gate_working")
        return GateLine(short_name(run.id), "…", say("compare.gate_wait"), sentence, "plain")
    if has_failed:
        word, sentence = say("compare.gate_unknown"), say("compare.gate_failed")
        return GateLine(short_name(run.id), SIGNS["unknown"], word, sentence, "plain")
    verdict, speed = run.gate.verdict, run.gate.speed
    key = f"compare.gate_{speed}_{verdict}"
    return GateLine(
        run=short_name(run.id),
        sign=SIGNS[verdict],
        word=say(key if key in catalogue() else f"compare.gate_{verdict}"),
        sentence=_sentence(run, short_name(reference)),
        tone=TONES.get(verdict, "plain"),
    )


def _sentence(run: ComparedRun, reference: str) -> str:
    found = run.gate
    if found.verdict == "reference":
        return say("compare.gate_is_reference")
    speed = say("compare.gate_no_rate", reference=reference)
    if run.rate_ratio is not None:
        gain = figures.ratio(run.rate_ratio)
        speed = say("compare.gate_rate", gain=gain, reference=reference)
    if found.metric is None:
        return say("compare.gate_says_unknown", speed=speed, reason=found.reason)
    delta, interval = score_delta(run, found.metric)
    values = {
        "speed": speed, "metric": say(f"compare.metric_{found.metric}"),
        "delta": figures.delta(delta), "tolerance": f"{found.tolerance:g}",
    }  # fmt: skip
    if interval is None:
        return say("compare.gate_says_bare", reason=found.reason, **values)
    low, high = figures.delta(interval.low), figures.delta(interval.high)
    if found.reason is not None:
        return say(
            "compare.gate_says_no_evidence", low=low, high=high, reason=found.reason, **values
        )
    return say(f"compare.gate_says_{found.verdict}", low=low, high=high, **values)


def score_delta(run: ComparedRun, metric: Metric) -> tuple[float | None, Interval | None]:
    """The difference of a macro score from the reference, and its interval."""
    short = metric.removesuffix("_macro")
    return getattr(run, f"{short}_delta"), getattr(run, f"{short}_interval")
