"""What was predicted of a run, beside what was measured."""

from __future__ import annotations

from ringside.estimate import Outcome, outcome_of
from ringside.run import RunRecord
from ringside.words import say

GIB = 2**30


def prediction_lines(record: RunRecord) -> list[str]:
    """Step and memory, each with its error once the run has measured it; empty without any."""
    found = outcome_of(record)
    if found is None or found.predicted_step_ms is None:
        return []
    return [_step_line(found), *_memory_lines(found)]


def _step_line(found: Outcome) -> str:
    if found.step_ms is None or found.error_ratio is None:
        return say("estimate.step_ahead", predicted=found.predicted_step_ms)
    return say(
        "estimate.step_outcome",
        predicted=found.predicted_step_ms,
        measured=found.step_ms,
        error=found.error_ratio,
    )


def _memory_lines(found: Outcome) -> list[str]:
    if found.predicted_memory_bytes is None or found.memory_bytes is None:
        return []
    return [
        say(
            "estimate.memory_outcome",
            predicted=found.predicted_memory_bytes / GIB,
            measured=found.memory_bytes / GIB,
            error=found.memory_error_ratio,
        )
    ]
