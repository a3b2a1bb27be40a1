"""`ringside compare`: runs side by side in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from rich.console import Console

from app.commands.tables import DASH, number, plain_console, plain_table, seconds
from app.views import figures
from app.views.class_deltas import COLUMNS, ClassDeltas, class_deltas
from app.views.contrast import contrast_lines
from app.views.gates import gate_line, score_delta
from app.views.naming import short_name
from app.views.prediction import prediction_lines
from ringside.compare import ComparedRun, Comparison, compare
from ringside.errors import SpecError
from ringside.run import RunRecord, fold_run, require_spec
from ringside.rundir import find_run, runs_root
from ringside.scores import Metric
from ringside.words import say

HEADS = (
    "column.run", "column.preset", "column.devices", "column.precision", "column.epoch",
    "column.rate", "column.speedup", "column.efficiency", "column.auc", "terminal.f1_macro",
    "column.map",
)  # fmt: skip
DIFFERENCES = ("column.auc", "column.f1", "column.map")
"""Keys of the words."""


def _refuse_same(records: Sequence[RunRecord]) -> None:
    """SpecError where all names are those of one run."""
    if len({record.id for record in records}) == 1:
        raise SpecError(say("compare.same_run", name=records[0].name))


def run(run_ids: Sequence[str], *, baseline: str | None, classes: bool, as_json: bool) -> None:
    """Print runs side by side; `baseline` is what the others are measured against."""
    if len(run_ids) + (baseline is not None) < 2:
        raise SpecError(say("compare.needs_two"))
    root = runs_root()
    records = [fold_run(find_run(root, run_id)) for run_id in run_ids]
    chosen = fold_run(find_run(root, baseline)) if baseline is not None else None
    for record in [*records, *([chosen] if chosen else [])]:
        require_spec(record)
    _refuse_same([*records, *([chosen] if chosen else [])])
    found = compare(root, records, chosen)
    if as_json:
        from app.commands.reading import print_json

        print_json(found)
        return
    print_comparison(found)
    print_contrast(found)
    for record in records:
        for line in prediction_lines(record):
            print(say("following.told", run=record.id, sentence=line))
    if classes:
        print_class_deltas(found)
    elif any(one.classes for one in found.runs):
        print(say("compare.classes_hint"), file=sys.stderr)


def gate(
    run_ids: Sequence[str], *, against: str | None, baseline: str | None, is_asked: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Only whether scores fell; returns the exit code."""
    from app.commands import gating

    if not is_asked:
        raise SpecError(say("gate.against_alone"))
    if baseline is not None:
        raise SpecError(say("gate.baseline"))
    return gating.run(run_ids, against=against, as_json=as_json)


def print_comparison(comparison: Comparison) -> None:
    """Runs as rows; score differences are against the reference."""
    console = plain_console()
    differences = (f"Δ{say(key)}" for key in DIFFERENCES)
    table = plain_table(*map(say, HEADS), *differences, say("compare.hours"))
    for one in comparison.runs:
        efficiency = one.speedup.efficiency_ratio
        table.add_row(
            short_name(one.id),
            one.preset,
            number(one.num_devices, "d"),
            "fp32" if one.mixed_precision == "no" else one.mixed_precision,
            seconds(one.epoch_time_s),
            number(one.samples_per_s, ",.0f"),
            number(one.speedup.value, ".2f", "x"),
            DASH if efficiency is None else f"{100 * efficiency:.0f} %",
            number(one.auc_macro),
            number(one.f1_macro),
            number(one.map_macro),
            *(_delta_text(one, metric) for metric in ("auc_macro", "f1_macro", "map_macro")),
            number(one.device_hours, ".3f"),
        )
    console.print(table)
    for line in _lines(comparison):
        console.print(line, soft_wrap=True)


def _delta_text(one: ComparedRun, metric: Metric) -> str:
    """A difference with its 95 % interval, where both runs kept their predictions."""
    delta, interval = score_delta(one, metric)
    if delta is None or interval is None:
        return number(delta, "+.4f")
    return say("compare.delta_between", delta=delta, low=interval.low, high=interval.high)


def _lines(comparison: Comparison) -> Iterator[str]:
    """The verdicts, what each speed-up was divided by, and what is counted."""
    for one in comparison.runs:
        line = gate_line(one, comparison.reference or one.id)
        told = say("compare.verdict", run=line.run, word=line.word, sentence=line.sentence)
        yield f"{line.sign} {told}"
    for one in comparison.runs:
        for reason in one.not_comparable:
            yield say("compare.apart", run=one.id, why=reason)
        for reason in one.speed_not_comparable:
            yield say("compare.speed_apart", run=one.id, why=reason)
        yield _divided(one)
    for precision, factor in comparison.precision_factor.items():
        yield say("compare.precision_factor", precision=precision, factor=factor)
    if any(one.gate.verdict in ("held", "worse", "undecided") for one in comparison.runs):
        yield say("compare.noise")
    yield say("compare.cost")
    for one in comparison.runs:
        if one.wall_time_until in ("ended", "now"):
            until = say(f"compare.cost_{one.wall_time_until}")
            hours = number(one.device_hours, ".3f")
            yield say("compare.device_hours", run=one.id, hours=hours, until=until)


def _divided(one: ComparedRun) -> str:
    """What the speed-up was divided by, or why there is none."""
    measured = one.speedup
    if measured.value is None or measured.baseline_id is None:
        return say("compare.undivided", run=one.id, why=measured.reason)
    return say(
        "compare.divided",
        run=short_name(one.id),
        baseline=short_name(measured.baseline_id),
        scaling=say(f"scaling.{measured.scaling}"),
    )


def print_contrast(comparison: Comparison) -> None:
    """In what the runs differ; nothing that is equal."""
    console = plain_console()
    lines = contrast_lines(comparison.configuration)
    console.print()
    if not lines:
        console.print(say("compare.equal"))
        return
    names = [short_name(one.id) for one in comparison.runs]
    table = plain_table(say("compare.different"), say("compare.setting"), *names)
    for at, line in enumerate(lines):
        is_new = not at or lines[at - 1].group != line.group
        table.add_row(line.group if is_new else "", line.name, *line.values)
    console.print(table)


def print_class_deltas(comparison: Comparison) -> None:
    """Every class of every run against the reference, the largest loss first."""
    reference = next(one for one in comparison.runs if one.id == comparison.reference)
    console = plain_console()
    for one in comparison.runs:
        if one.id != reference.id:
            _print_deltas(console, class_deltas(one, reference))


def _print_deltas(console: Console, found: ClassDeltas) -> None:
    console.print()
    if found.rows:
        console.print(say("terminal.figure", label=say("compare.classes"), value=found.aside))
        table = plain_table(*(say(f"compare.class_{name}") for name in COLUMNS))
        for row in found.rows:
            table.add_row(*(_cell(one.cell.text, one.under, one.mark) for one in row))
        console.print(table)
    for note in found.notes:
        console.print(note, soft_wrap=True)


def _cell(text: str, under: str, mark: str) -> str:
    sign = {"up": " ▲", "down": " ▼", "": ""}[mark] if text != figures.DASH else ""
    return say("terminal.aside", text=f"{text}{sign}", aside=under) if under else f"{text}{sign}"
