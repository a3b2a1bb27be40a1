"""What the Compare page does: it polls, and gets only what it does not hold yet."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.components import Component

from app.page.compare.choice import Choice, read_choice
from app.page.compare.drawing import Drawings, drawn
from app.page.compare.plots import plot_of
from app.page.draw import soft
from app.page.draw.compare import (
    class_tables,
    comparison,
    contrast_table,
    pictures,
    predicted_table,
)
from app.page.draw.picker import picker
from app.page.frame import changed, quiet, read_seen
from app.page.settings import PageSettings
from app.views.charts.curves import curves_figure
from app.views.charts.figure import Picture
from app.views.class_deltas import class_deltas
from app.views.compare_csv import comparison_csv
from app.views.comparisons import Compared
from app.views.contrast import contrast_lines
from app.views.curves import CurveOptions, CurveSet, curve_sets, read_options
from app.views.gates import gate_line
from app.views.listing import ListRow
from app.views.naming import short_name
from app.views.predicted import predicted_rows
from app.views.scaling_view import scaling_figure
from app.views.table import MAX_RUNS, MIN_RUNS, view_of
from ringside.compare import CURVES, Comparison
from ringside.errors import RingsideError
from ringside.words import say, spoken

Changes = dict[Component, Any]

PLOTS = CURVES
MAX_QUERY = 1000
MAX_OFFERED = 200


@dataclass(frozen=True)
class Parts:
    """The components of the page. What `seen` holds comes back with every poll."""

    seen: gr.Textbox
    notice: gr.HTML
    chosen: gr.HTML
    comparison: gr.HTML
    curves: gr.Column
    x: gr.Radio
    log: gr.Checkbox
    smoothing: gr.Slider
    train_loss: gr.LinePlot
    val_loss: gr.LinePlot
    auc_macro: gr.LinePlot
    f1_macro: gr.LinePlot
    pictures: gr.HTML
    scaling: gr.HTML
    classes: gr.HTML
    contrast: gr.HTML
    predicted: gr.HTML

    def polled(self) -> list[Any]:
        """What a poll may change."""
        return [
            self.seen, self.notice, self.comparison, self.curves, self.train_loss,
            self.val_loss, self.auc_macro, self.f1_macro, self.pictures, self.scaling,
            self.classes, self.contrast, self.predicted,
        ]  # fmt: skip


class Handlers:
    """What the page does. Everything shown goes through `_changes`."""

    def __init__(self, parts: Parts, settings: PageSettings) -> None:
        self.parts = parts
        self.desk = settings.desk
        self.comparisons = settings.comparisons
        self.drawings = Drawings()

    @quiet
    def open(self, request: gr.Request) -> Changes:
        """The runs of `?runs=` against `&baseline=`, else the newest that make sense together."""
        rows = self.desk.rows()
        asked = _names(request.query_params.get("runs"))
        choice = self._asked(asked, request.query_params.get("baseline") or "", rows)
        if not asked:
            choice = Choice(tuple(self._suggested(rows)))
        is_open = len(choice.runs) < MIN_RUNS and len(rows) >= MIN_RUNS
        offered = _offered(rows, choice)
        shown = picker(offered, is_open=is_open) if rows else soft(say("compare.empty"))
        chosen = gr.HTML(choice.as_text(), rows=shown)
        return {self.parts.chosen: chosen, **self._changes(choice, CurveOptions(), {})}

    @quiet
    def show(self, data: Changes) -> Changes:
        """The comparison of the chosen runs, or the sentence that says what is missing."""
        return self._all(data)

    @quiet
    def redraw(self, data: Changes) -> Changes:
        """The curves in another way."""
        return self._all(data)

    @quiet
    def poll(self, data: Changes) -> Changes:
        """What changed since the browser last heard of it."""
        return self._all(data)

    def _all(self, data: Changes) -> Changes:
        parts = self.parts
        options = read_options(data[parts.x], data[parts.log], data[parts.smoothing])
        return self._changes(read_choice(data[parts.chosen]), options, read_seen(data[parts.seen]))

    def _changes(self, choice: Choice, options: CurveOptions, seen: dict[str, Any]) -> Changes:
        try:
            found = self.comparisons.look(choice.runs, choice.baseline or None)
        except RingsideError as error:
            return self._nothing(str(error), seen)
        key = (found.version, options)
        if not changed({"key": key}, seen):
            return {}
        texts = self.drawings.get((found.version, "texts"), lambda: _texts(found)) | {"notice": ""}
        # Drawn again only for other speed-ups: a run that goes on changes all else every second.
        scaling = ("scaling", spoken(), found.comparison.scaling)
        texts["scaling"] = self.drawings.get(scaling, lambda: _scaling(found.comparison))
        curves = self.drawings.get(("curves", key), lambda: curve_sets(found.records, options))
        shows = {"curves": bool(curves)}
        plots: dict[str, Any] = {}
        if found.is_live:
            plots = {one.metric: one for one in curves}
            texts["pictures"] = ""
        else:
            texts["pictures"] = self.drawings.get(key, lambda: pictures(_curves(curves)))
        new = changed({**texts, **shows, **plots}, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        seen |= {name: digest for name, (_, digest) in changed({"key": key}, {}).items()}
        values = {name: value for name, (value, _) in new.items()}
        updates = {
            getattr(self.parts, name): _update(name, value) for name, value in values.items()
        }
        return {**updates, self.parts.seen: json.dumps(seen)}

    def _nothing(self, sentence: str, seen: dict[str, Any]) -> Changes:
        """Only the sentence that says why there is no comparison."""
        parts = self.parts
        empty = dict.fromkeys(("comparison", "scaling", "classes", "contrast", "predicted"), "")
        values: dict[str, Any] = {**empty, "notice": soft(sentence), "curves": False}
        new = changed({**values, "key": sentence}, seen)
        if not new:
            return {}
        seen |= {name: digest for name, (_, digest) in new.items()}
        found = {
            getattr(parts, name): _update(name, value)
            for name, (value, _) in new.items() if name != "key"
        }  # fmt: skip
        return {**found, parts.seen: json.dumps(seen)}

    def _asked(self, names: Sequence[str], baseline: str, rows: Sequence[ListRow]) -> Choice:
        ids = {name: row.id for row in rows for name in (row.id, row.name)}
        chosen = dict.fromkeys(ids[name] for name in names if name in ids)
        base = ids.get(baseline, "")
        if base and base not in chosen:
            chosen = {base: None, **chosen}
        return Choice(tuple(chosen)[:MAX_RUNS], base)

    def _suggested(self, rows: Sequence[ListRow]) -> list[str]:
        """The newest run with its baseline in front; else the two newest."""
        shown = [row for row in rows if not row.notes.archived]
        for row in shown:
            if baseline := self.desk.baseline_id(row.id):
                return [baseline, row.id]
        return [row.id for row in shown[:MIN_RUNS]]


def _offered(rows: Sequence[ListRow], choice: Choice) -> list[ListRow]:
    """The newest runs that are not put away, and those that are chosen."""
    newest = [row for row in rows if not row.notes.archived][:MAX_OFFERED]
    shown = {row.id for row in newest} | set(choice.runs)
    return [row for row in rows if row.id in shown]


def _names(text: str | None) -> list[str]:
    return [name for name in re.split(r"[,\s]+", (text or "")[:MAX_QUERY]) if name]


def _update(name: str, value: Any) -> Any:
    """What the component takes."""
    if name == "curves":
        return gr.Column(visible=value)
    return plot_of(value) if isinstance(value, CurveSet) else value


def _texts(found: Compared) -> dict[str, str]:
    """The HTML of every place that does not depend on the way curves are shown."""
    result = found.comparison
    view = view_of(result)
    reference = next(run for run in result.runs if run.id == result.reference)
    gates = [
        gate_line(
            run, reference.id,
            is_waiting=run.id in found.waiting, has_failed=run.id in found.failed,
        )
        for run in result.runs
    ]  # fmt: skip
    others = [run for run in result.runs if run is not reference]
    return {
        "comparison": comparison(view, gates, comparison_csv(result), _notes(result, found)),
        "classes": class_tables([class_deltas(run, reference) for run in others]),
        "contrast": contrast_table(
            contrast_lines(result.configuration), [short_name(run.id) for run in result.runs]
        ),
        "predicted": predicted_table(predicted_rows(result.runs)),
    }


def _curves(curves: Sequence[CurveSet]) -> list[Picture]:
    return drawn(curves_figure(one) for one in curves)


def _scaling(result: Comparison) -> str:
    empty = ("charts.scaling", "compare.scaling_empty")
    return pictures(drawn([scaling_figure(result)]), empty=empty)


def _notes(result: Comparison, found: Compared) -> list[str]:
    notes = [say("compare.working")] if found.waiting else []
    decided = any(run.gate.verdict in ("held", "worse", "undecided") for run in result.runs)
    return [*notes, say("compare.noise")] if decided else notes
