"""Commands that read runs: list, show."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.commands.printing import padded, printable, width_of
from ringside.run import RunRecord, fold_run
from ringside.rundir import RunDir, find_run, runs_root
from ringside.shelf.finding import Entry, Query, check_query, find_entries
from ringside.words import DEFAULT, say, spoken

if TYPE_CHECKING:
    from ringside.launch.queue import Place

FIGURES = {
    "epoch_time_s": "{:.2f} s", "speedup": "{:.2f}x", "auc_macro": "AUC {:.3f}",
    "f1_macro": "F1 {:.3f}",
}  # fmt: skip
"""Of a run in the list that is not sorted by time, and how each is printed."""
TRIES = ("retry_of", "retried_as")
"""Ids of the other tries of a run."""
ENGLISH = {
    "runs.in_folder": "runs in {root}",
    "runs.none_fit": "No run fits; `ringside list` shows those that are not put away.",
    "runs.none_yet": "No runs yet. Start one: ringside run single",
}
"""What `list` says, as in the words: to open them takes longer than the list."""


def list_runs(*, as_json: bool, limit: int, query: Query | None = None) -> None:
    """Print the newest runs, or those that are asked for."""
    root, query = runs_root(), check_query(query or Query())
    runs = find_entries(root, query, limit)
    places = _places(root, runs)
    if as_json:
        print_json([summary_json(run, places.get(run.id)) for run in runs])
        return
    print(_say("runs.in_folder", root=root), file=sys.stderr)
    if not runs:
        print(_nothing(query), file=sys.stderr)
    print_columns([_list_cells(run, places.get(run.id)) for run in runs])


def _places(root: Path, runs: Sequence[Entry]) -> dict[str, Place]:
    if not any(run.state == "queued" for run in runs):
        return {}
    from app.views.queue import places_by_run

    return places_by_run(root)


def summary_json(run: Entry, place: Place | None = None) -> dict[str, Any]:
    """The frozen shape of a line of `list --json`; `started` in seconds since 1970.

    The figures are there where the order needed them.
    """
    found = {name: getattr(run, name) for name in ("id", "state", "preset", "data", "started")}
    found |= {name: getattr(run.notes, name) for name in ("tags", "note", "archived")}
    found |= {name: getattr(run, name) for name in TRIES}
    found["queue"] = None if place is None else place_json(place)
    return found | {name: getattr(run.figures, name) for name in FIGURES if run.figures}


def place_json(place: Place) -> dict[str, Any]:
    """The frozen shape of a place in the queue: in `queue`, `list` and `show`."""
    return {
        "id": place.run_id,
        "host": place.host,
        "position": place.position,
        "gpu_ids": place.gpu_ids,
        "is_paused": place.is_paused,
        "waits_for": [
            {"id": holder.run_id, "gpu_ids": holder.gpu_ids, "state": holder.state}
            for holder in place.waits_for
        ],
    }


def _nothing(query: Query) -> str:
    if query.narrows or query.archived:
        return _say("runs.none_fit")
    return _say("runs.none_yet")


def _say(key: str, **values: Any) -> str:
    return ENGLISH[key].format(**values) if spoken() == DEFAULT else say(key, **values)


def _list_cells(run: Entry, place: Place | None) -> list[str]:
    """The figures stand before the tags, which may be many."""
    # In English a state is its own word.
    state = run.state if spoken() == DEFAULT else say(f"state.{run.state}")
    cells = [run.id, state, run.preset or "", run.model or "", run.data or ""]
    if run.figures is not None:
        values = (getattr(run.figures, name) for name in FIGURES)
        cells += [
            "–" if value is None else form.format(value)
            for value, form in zip(values, FIGURES.values(), strict=True)
        ]
    said = [*_said_of_launch(run, place), *run.notes.tags]
    return [printable(cell) for cell in (*cells, " ".join(said))]


def _said_of_launch(run: Entry, place: Place | None) -> Iterator[str]:
    """Its place in the queue, and the other try of it; the words are read only where needed."""
    if place is None and not any(getattr(run, name) for name in TRIES):
        return
    from app.views.queue import place_sentence, try_sentence

    if place is not None:
        yield place_sentence(place)
    for name in TRIES:
        if other := getattr(run, name):
            yield try_sentence(name, other)


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


def record_json(record: RunRecord, root: Path | None = None) -> dict[str, Any]:
    """The frozen shape of `show --json`; units stand in the names, missing is null.

    `root` holds the runs that it is measured against, by default those of this machine.
    """
    from app.views.queue import place_of
    from app.views.setup import accepted_warnings
    from app.views.watching import watch_json
    from ringside.class_scores import read_class_scores
    from ringside.estimate import outcome_of
    from ringside.imported import read_imported
    from ringside.rank_windows import rank_parts
    from ringside.speedup import speedup_of

    measured, place = speedup_of(root or runs_root(), record), place_of(record)
    imported = read_imported(RunDir(Path(record.path)))
    return {
        "id": record.id,
        "path": record.path,
        "state": record.state,
        "preset": record.spec.preset if record.spec else None,
        "queue": None if place is None else place_json(place),
        "retry_of": record.spec.retry_of if record.spec else None,
        "retried_as": record.exit.retried_as if record.exit else None,
        "imported_from": imported.playbook if imported else None,
        "requested": _requested(record),
        "observed": record.observed,
        "data": _data(record),
        "epochs": record.epochs,
        "speedup": measured.value,
        "speedup_details": measured,
        "baseline": measured.baseline_id,
        "estimate": outcome_of(record),
        "accepted_warnings": accepted_warnings(record),
        "best_checkpoint": record.best_checkpoint,
        "class_scores": read_class_scores(RunDir(Path(record.path))),
        "failure": record.failure,
        "warnings": [warning.message for warning in record.warnings],
        "total_time_s": record.total_time_s,
        "exit": record.exit,
        **watch_json(record),
        "ranks": rank_parts(RunDir(Path(record.path))),
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
        "gpu_ids": spec.gpu_ids,
        "time_limit_s": spec.time_limit_s,
        "retries": spec.retries,
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


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Plain text in columns as wide as their longest cell, for a terminal and for scripts."""
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(map(padded, row, widths)).rstrip())


def print_json(value: Any) -> None:
    """Indented JSON on standard output."""
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
