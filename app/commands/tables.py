"""Tables for the terminal; missing is a dash, every number has its unit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from app.views.classes import table_notes, table_title
from app.views.counts import count_lines, epoch_name, label_scores
from app.views.ending import failure_lines
from app.views.prediction import prediction_lines
from app.views.queue import launch_lines
from app.views.ranks import rank_lines
from app.views.traces import trace_lines
from app.views.watching import remedy_lines, watch_lines
from ringside.class_scores import EpochClasses, read_class_scores
from ringside.imported import read_imported
from ringside.launch.reconcile import orphan_sentence
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.sentences import plan_sentence
from ringside.speedup import SpeedUp, speedup_of
from ringside.words import percent, say
from ringside.words.retelling import retold

DASH = "–"
PIPE_WIDTH = 240


def number(value: float | None, form: str = ".3f", unit: str = "") -> str:
    """The value in its form and unit, or a dash."""
    return DASH if value is None else f"{value:{form}}{unit}"


def seconds(value: float | None) -> str:
    """A duration; short epochs need the second decimal."""
    return number(value, ".2f" if value is not None and value < 10 else ".1f", " s")


def share(value: float | None) -> str:
    """A ratio as `65 %`."""
    return DASH if value is None else percent(value)


def speedup_text(measured: SpeedUp) -> str:
    """A speed-up with its kind of scaling, or why there is none."""
    if measured.value is None:
        return say("terminal.speedup_missing", dash=DASH, reason=measured.reason)
    scaling = say(f"scaling.{measured.scaling}")
    return say("terminal.speedup_value", value=measured.value, scaling=scaling)


def print_record(root: Path, record: RunRecord) -> None:
    """One run: state, plan, epochs, speed-up, failure."""
    console, state = plain_console(), say(f"state.{record.state}")
    console.print(f"{record.name}  {state}  {record.path}", style="bold", soft_wrap=True)
    if (imported := read_imported(RunDir(Path(record.path)))) is not None:
        console.print(say("playbook.imported_run", name=imported.playbook), soft_wrap=True)
    if record.spec is not None:
        console.print(plan_sentence(record.spec), soft_wrap=True)
    for line in launch_lines(record):
        console.print(line, soft_wrap=True)
    if record.epochs:
        console.print(epoch_table(record))
    if sentence := label_scores(record.epochs):
        console.print(sentence, soft_wrap=True)
    for line in count_lines(record):
        console.print(line, soft_wrap=True)
    for warning in record.warnings:
        if warning.code != "data":
            console.print(say("terminal.note", sentence=retold(warning.message)), soft_wrap=True)
    gain = speedup_text(speedup_of(root, record))
    console.print(say("terminal.speedup", value=gain), soft_wrap=True)
    watched = (*rank_lines(RunDir(Path(record.path))), *watch_lines(record))
    for line in (*prediction_lines(record), *trace_lines(record), *watched, *_end_lines(record)):
        console.print(line, soft_wrap=True)


def _end_lines(record: RunRecord) -> Iterator[str]:
    """How it ended and what to do; of a run whose supervisor is gone, what still runs."""
    reason = record.exit.reason if record.exit else ""
    if record.failure is not None and record.failure.sentence not in reason:
        told = retold(record.failure.sentence)
        yield say("terminal.rank_said", rank=record.failure.rank, sentence=told)
    if reason:
        yield retold(reason)
    elif record.final and (sentence := orphan_sentence(RunDir(Path(record.path)))):
        yield sentence
    yield from failure_lines(record)
    yield from remedy_lines(record)


def epoch_table(record: RunRecord) -> Table:
    """Epochs as rows."""
    names = ("epoch", "time", "rate", "loss", "auc", "f1_macro", "f1_micro", "evaluated")
    table = plain_table(*(say(f"terminal.{name}") for name in names))
    for row in record.epochs:
        table.add_row(
            epoch_name(row, record),
            seconds(row.whole_time_s),
            number(row.samples_per_s, ",.0f"),
            number(row.train_loss, ".4f"),
            number(row.auc_macro),
            number(row.f1_macro),
            number(row.f1_micro),
            number(row.num_evaluated, "d"),
        )
    return table


def print_classes(record: RunRecord, *, in_full: bool) -> None:
    """The scores of every class, of the last and the best epoch; else how to see them."""
    found = read_class_scores(RunDir(Path(record.path)))
    if found is None:
        return
    console = plain_console()
    if not in_full:
        console.print(say("classes.hint", n=len(found.last.classes), run=record.name))
        return
    for name, scored in (("last", found.last), ("best", found.best)):
        if scored is None or (name == "best" and scored.epoch == found.last.epoch):
            continue
        console.print()
        console.print(table_title(name, scored))
        console.print(class_table(scored))
        for note in table_notes(scored):
            console.print(note, soft_wrap=True)


def class_table(scored: EpochClasses) -> Table:
    """Classes as rows; counts at the common threshold, then the tuned one and F1 there."""
    names = ("AUC", "AP", "F1", "TP", "FP", "FN", "TN")
    tuned_heads = (say("terminal.tuned_at"), say("terminal.f1_tuned"))
    table = plain_table(say("classes.class"), *names, *tuned_heads)
    for one in scored.classes:
        ratios = (one.auc, one.average_precision, one.f1)
        counts = (one.true_positives, one.false_positives, one.false_negatives, one.true_negatives)
        tuned = (one.threshold_tuned, one.f1_tuned)
        table.add_row(one.name, *map(number, ratios), *map(str, counts), *map(number, tuned))
    return table


def plain_console() -> Console:
    """Text as it is, brackets and colons included; in a pipe no column is cut to fit a window."""
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def plain_table(*columns: Any) -> Table:
    """No lines; the first column is words."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    return table
