"""Compare: the same questions put to two to eight runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from app.page.draw import soft, title
from app.page.draw.compare import comparison
from app.page.frame import QUICK, block, draw_frame, quiet
from app.page.settings import PageSettings
from app.views.desk import Desk, ListRow
from app.views.table import MAX_RUNS, MIN_RUNS, compare_view
from ringside.errors import RingsideError
from ringside.words import say

# The address always names what is shown, so that it can be sent to a colleague.
KEEP_ADDRESS = """(runs) => {
  const ids = (runs || []).join(',');
  window.history.replaceState(null, '', ids ? '?runs=' + ids : window.location.pathname);
}"""


def draw_compare(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    draw_frame(settings, "compare")
    block("lead", title(say("page.compare"), say("compare.lead")))
    with gr.Column(elem_classes="rs-card"):
        runs = gr.Dropdown(
            label=say("field.runs"),
            info=say("help.runs"),
            elem_id="field-runs",
            choices=[],
            value=[],
            multiselect=True,
            max_choices=MAX_RUNS,
        )
    shown = block("comparison")
    handlers = Handlers(settings.desk)
    page.load(handlers.open, None, [runs, shown], api_name="open_compare", **QUICK)
    runs.input(handlers.show, runs, shown, trigger_mode="always_last", api_name="compare", **QUICK)
    runs.input(
        None, runs, None, js=KEEP_ADDRESS, api_name="compare_address",
        api_visibility="private", queue=False,
    )  # fmt: skip


class Handlers:
    """What the page does."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @quiet
    def open(self, request: gr.Request) -> tuple[Any, str]:
        """The runs of `?runs=`, else the newest that make sense together."""
        rows = self.desk.rows()
        asked = [text for text in request.query_params.get("runs", "").split(",") if text]
        chosen = self._known(asked, rows) if asked else self._suggested(rows)
        choices = [(_label(row), row.id) for row in rows]
        return gr.Dropdown(choices=choices, value=chosen), self._html(chosen, rows)

    @quiet
    def show(self, chosen: Sequence[str] | None) -> str:
        """The comparison of the chosen runs, or the sentence that says what is missing."""
        return self._html(list(chosen or []), self.desk.rows())

    def _html(self, chosen: list[str], rows: Sequence[ListRow]) -> str:
        if len(rows) < MIN_RUNS:
            return soft(say("compare.empty"))
        try:
            return comparison(compare_view(self.desk, chosen))
        except RingsideError as error:
            return soft(str(error))

    def _known(self, asked: Sequence[str], rows: Sequence[ListRow]) -> list[str]:
        ids = {name: row.id for row in rows for name in (row.id, row.name)}
        return [ids[text] for text in asked if text in ids]

    def _suggested(self, rows: Sequence[ListRow]) -> list[str]:
        """The newest run with its baseline in front; else the two newest."""
        for row in rows:
            if baseline := self.desk.baseline_id(row.id):
                return [baseline, row.id]
        return [row.id for row in rows[:MIN_RUNS]]


def _label(row: ListRow) -> str:
    return f"{row.name} · {row.preset} · {row.model} · {say(f'state.{row.state}')}"
