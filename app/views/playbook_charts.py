"""The charts of a playbook: of each run where its step goes, of all runs their curves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

from app.views.charts.curves import curves_figure
from app.views.charts.drawing import picture
from app.views.charts.figure import Figure, Picture
from app.views.charts.selection import figures_of
from app.views.curves import CurveOptions, curve_sets
from ringside.playbook.content import Chart
from ringside.playbook.gathering import Draft
from ringside.rundir import RunDir

OF_THE_MACHINE = ("topology", "all-reduce")
"""The same for all runs of it, so only the chosen one shows them."""


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A chart's place in the playbook, and the chart."""

    chart: Chart
    picture: Picture


def draw(draft: Draft, root: Path) -> list[Drawn]:
    """All of them, the curves first; a second or so each."""
    return [
        _drawn(draft, figure, run_id)
        for run_id, figure in (*_of_all(draft), *_of_each(draft, root))
    ]


def _of_all(draft: Draft) -> Iterator[tuple[str | None, Figure]]:
    records = [case.record for case in draft.cases.values() if case.record is not None]
    for curves in curve_sets(records, CurveOptions()):
        figure = curves_figure(curves)
        if figure is not None:
            yield None, figure


def _of_each(draft: Draft, root: Path) -> Iterator[tuple[str, Figure]]:
    for run_id, case in draft.cases.items():
        for figure in figures_of(case, root):
            if figure.name not in OF_THE_MACHINE or run_id == draft.playbook.chosen:
                yield run_id, figure


def _drawn(draft: Draft, figure: Figure, run_id: str | None) -> Drawn:
    clear = draft.redactor.text
    own = figure.name if run_id is None else f"{RunDir(Path(run_id)).name}-{figure.name}"
    path = figure.name if run_id is None else f"{run_id}/{figure.name}"
    chart = Chart(
        path=f"charts/{path}", run=run_id, title=clear(figure.title),
        headline=clear(figure.headline), description=clear(figure.description),
    )  # fmt: skip
    shown = dataclasses.replace(
        figure, name=own, title=chart.title, headline=chart.headline, description=chart.description
    )
    return Drawn(chart, picture(shown))
