"""The four numbers by which runs are sorted, of one run or of many at once."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec

from ringside.run import RunRecord
from ringside.speedup import BASELINE, choose_baseline, speedup


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Mean time of the epochs after the first; scores of the last evaluation; None: not measured.

    `speedup` is over `baseline_id`, at the same precision.
    """

    epoch_time_s: float | None = None
    speedup: float | None = None
    baseline_id: str | None = None
    auc_macro: float | None = None
    f1_macro: float | None = None


def figures_of(record: RunRecord, baseline: RunRecord | None) -> Figures:
    """The figures of one run against its baseline."""
    rows = record.steady_epochs
    scored = next((row for row in reversed(record.epochs) if row.num_evaluated), None)
    gain = speedup(record, baseline)
    return Figures(
        epoch_time_s=sum(row.epoch_time_s for row in rows) / len(rows) if rows else None,
        speedup=gain.value,
        baseline_id=gain.baseline_id,
        auc_macro=scored.auc_macro if scored else None,
        f1_macro=scored.f1_macro if scored else None,
    )


def baselines_among(records: Sequence[RunRecord]) -> dict[str, RunRecord | None]:
    """The baseline of each run by its id, looked for among these, which are newest first.

    The same as `find_baseline` for each, without reading the folder once for each.
    """
    singles = [r for r in records if r.spec is not None and r.spec.preset == BASELINE]
    candidates = [(r.spec, functools.partial(_itself, r)) for r in singles if r.spec is not None]
    return {record.id: choose_baseline(record, candidates) for record in records}


def all_figures(records: Sequence[RunRecord]) -> dict[str, Figures]:
    """The figures of all these runs, which are newest first, by id."""
    baselines = baselines_among(records)
    return {record.id: figures_of(record, baselines[record.id]) for record in records}


def _itself(record: RunRecord) -> RunRecord:
    return record
