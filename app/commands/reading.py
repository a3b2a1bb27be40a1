"""Commands that read runs: list, show, compare."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ringside.run import RunRecord, RunSummary, fold_run, require_spec
from ringside.run import list_runs as read_runs
from ringside.rundir import RunDir, find_run, runs_root


def list_runs(*, as_json: bool, limit: int) -> None:
    """Print the newest runs."""
    root = runs_root()
    runs = read_runs(root)[:limit]
    if as_json:
        print_json([summary_json(run) for run in runs])
        return
    print(f"runs in {root}", file=sys.stderr)
    if not runs:
        print("No runs yet. Start one: ringside run single", file=sys.stderr)
    cells = ((run.id, run.state, run.preset, run.model, run.data) for run in runs)
    print_columns([[cell or "" for cell in row] for row in cells])


def summary_json(run: RunSummary) -> dict[str, Any]:
    """The frozen shape of a line of `list --json`; `started` in seconds since 1970."""
    return {name: getattr(run, name) for name in ("id", "state", "preset", "data", "started")}


def show(run_id: str, *, as_json: bool, classes: bool = False) -> None:
    """Print one run, with `classes` the scores of every class too."""
    root = runs_root()
    record = fold_run(find_run(root, run_id))
    if as_json:
        print_json(record_json(record))
    else:
        from app.commands.tables import print_classes, print_record

        print_record(root, record)
        print_classes(record, in_full=classes)


def record_json(record: RunRecord) -> dict[str, Any]:
    """The frozen shape of `show --json`; units stand in the names, missing is null."""
    from ringside.class_scores import read_class_scores
    from ringside.estimate import outcome_of
    from ringside.speedup import speedup_of

    measured = speedup_of(runs_root(), record)
    return {
        "id": record.id,
        "path": record.path,
        "state": record.state,
        "preset": record.spec.preset if record.spec else None,
        "requested": _requested(record),
        "observed": record.observed,
        "data": _data(record),
        "epochs": record.epochs,
        "speedup": measured.value,
        "speedup_details": measured,
        "baseline": measured.baseline_id,
        "estimate": outcome_of(record),
        "best_checkpoint": record.best_checkpoint,
        "class_scores": read_class_scores(RunDir(Path(record.path))),
        "failure": record.failure,
        "warnings": [warning.message for warning in record.warnings],
        "total_time_s": record.total_time_s,
        "exit": record.exit,
    }


def _requested(record: RunRecord) -> dict[str, Any] | None:
    spec = record.spec
    if spec is None:
        return None
    return {
        "num_processes": spec.num_processes,
        "strategy": spec.strategy,
        "mixed_precision": spec.accelerate.mixed_precision,
        "device": spec.device,
        "model": spec.model,
        "data": spec.data.label,
        "image_size": spec.data.image_size,
        "epochs": spec.epochs,
        "global_batch": spec.global_batch,
        "micro_batch": spec.micro_batch,
        "accumulation_steps": spec.training.accumulation_steps,
        "learning_rate": spec.learning_rate,
        "seed": spec.seed,
        "weights": spec.weights,
        "settings": spec.training,
        "sources": spec.sources,
    }


def _data(record: RunRecord) -> dict[str, Any] | None:
    started = record.started
    if started is None:
        return None
    return {
        "title": started.data_title,
        "task": started.task,
        "synthetic": started.synthetic,
        "num_train": started.num_train,
        "num_val": started.num_val,
        "num_classes": started.num_classes,
        "fingerprint": started.data_fingerprint,
    }


def compare(run_ids: list[str], *, as_json: bool) -> None:
    """Print runs side by side."""
    from ringside.compare import compare as compare_runs
    from ringside.errors import SpecError

    if len(run_ids) < 2:
        raise SpecError("compare needs two runs or more; `ringside show` prints one.")
    root = runs_root()
    records = [fold_run(find_run(root, run_id)) for run_id in run_ids]
    for record in records:
        require_spec(record)
    comparison = compare_runs(root, records)
    if as_json:
        print_json(comparison)
    else:
        from app.commands.tables import print_comparison

        print_comparison(comparison)
        print_predictions(records)


def print_predictions(records: list[RunRecord]) -> None:
    """What was predicted of each run, beside what came of it."""
    from app.views.prediction import prediction_lines

    for record in records:
        for line in prediction_lines(record):
            print(f"{record.id}: {line}")


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Plain text in columns as wide as their longest cell, for a terminal and for scripts."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def print_json(value: Any) -> None:
    """Indented JSON on standard output."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
