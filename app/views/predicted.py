"""What was predicted of compared runs, beside what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.views import figures
from app.views.naming import short_name
from ringside.compare import ComparedRun
from ringside.words import say

FORMS = {
    "epoch_time_s": figures.seconds, "samples_per_s": figures.count, "speedup": figures.ratio,
}  # fmt: skip


def predicted_rows(runs: Sequence[ComparedRun]) -> tuple[tuple[str, ...], ...]:
    """Run, figure, predicted, measured, error; runs without a prediction are left out."""
    return tuple(row for run in runs for row in _rows(run))


def _rows(run: ComparedRun) -> Iterator[tuple[str, ...]]:
    found = run.predicted
    if found is None:
        return
    measured = {
        "epoch_time_s": run.epoch_time_s, "samples_per_s": run.samples_per_s,
        "speedup": run.speedup.value,
    }  # fmt: skip
    for name, form in FORMS.items():
        value = getattr(found, name)
        if value is not None:
            error = getattr(found, f"{name}_error_ratio")
            yield (
                short_name(run.id), say(f"compare.predicted_{name}"), form(value),
                form(measured[name]), figures.change(error),
            )  # fmt: skip
