"""The table of a comparison as CSV: plain numbers, units in the names of columns, missing empty."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from ringside.compare import ComparedRun, Comparison

COLUMNS = (
    "id", "preset", "state", "num_devices", "global_batch", "mixed_precision", "epoch_time_s",
    "samples_per_s", "rate_ratio", "auc_macro", "f1_macro", "f1_micro", "map_macro", "auc_delta",
    "f1_delta", "map_delta", "wall_time_s", "wall_time_until", "device_hours",
)  # fmt: skip
INTERVALS = ("auc_interval", "f1_interval", "map_interval")
GAINS = ("value", "scaling", "efficiency_ratio", "baseline_id", "reason")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def comparison_csv(comparison: Comparison) -> bytes:
    """One line a run, in UTF-8."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = [dict(_cells(run)) for run in comparison.runs]
    writer.writerow(rows[0] if rows else [])
    for row in rows:
        writer.writerow(map(_safe, row.values()))
    return text.getvalue().encode()


def _cells(run: ComparedRun) -> Iterator[tuple[str, Any]]:
    for name in COLUMNS:
        yield name, getattr(run, name)
    for name in INTERVALS:
        interval = getattr(run, name)
        yield f"{name}_low", interval and interval.low
        yield f"{name}_high", interval and interval.high
    for name in GAINS:
        yield f"speedup_{name}", getattr(run.speedup, name)
    yield "gate", run.gate.verdict
    yield "gate_metric", run.gate.metric
    yield "gate_tolerance", run.gate.tolerance
    yield "not_comparable", "; ".join(run.not_comparable)
    yield "speed_not_comparable", "; ".join(run.speed_not_comparable)


def _safe(value: Any) -> Any:
    """A spreadsheet takes text that begins like a formula for one."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
