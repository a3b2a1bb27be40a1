"""What was predicted of a run before it began, beside what came of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.spec import FORMAT


class Predicted(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of `estimate.json`; an error is (predicted - measured) / measured.

    Waiting for images is no part of a prediction.
    """

    epoch_time_s: float | None = None
    samples_per_s: float | None = None
    speedup: float | None = None
    confidence: str = "not enough data"
    epoch_time_s_error_ratio: float | None = None
    samples_per_s_error_ratio: float | None = None
    speedup_error_ratio: float | None = None


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the file that is compared."""

    format: int
    epoch_time_s: float | None = None
    samples_per_s: float | None = None
    speedup: float | None = None
    confidence: str = "not enough data"


def predicted_of(
    record: RunRecord,
    *,
    epoch_time_s: float | None,
    samples_per_s: float | None,
    speedup: float | None,
) -> Predicted | None:
    """The stored prediction with its errors; None where none was stored."""
    run = RunDir(Path(record.path))
    found = run.read(run.estimate, _Stored)
    if found is None or found.format > FORMAT:
        return None
    return Predicted(
        epoch_time_s=found.epoch_time_s,
        samples_per_s=found.samples_per_s,
        speedup=found.speedup,
        confidence=found.confidence,
        epoch_time_s_error_ratio=_error(found.epoch_time_s, epoch_time_s),
        samples_per_s_error_ratio=_error(found.samples_per_s, samples_per_s),
        speedup_error_ratio=_error(found.speedup, speedup),
    )


def _error(predicted: float | None, measured: float | None) -> float | None:
    return None if predicted is None or not measured else predicted / measured - 1
