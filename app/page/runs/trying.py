"""Try a checkpoint on pictures: the card on the page of a run, and what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr
from gradio.components import Component

from app.page.draw import soft
from app.page.draw.trying import sample_cards, trial_panel, try_heading, use_elsewhere
from app.page.frame import QUEUED, acts, block, changed, hidden, warn
from app.page.runs.opened import OpenedRun
from app.views.run import RunView
from app.views.trials import MAX_PICTURE_BYTES, MAX_PICTURES, Picture, checkpoint_of
from ringside.errors import RingsideError, RunDirError
from ringside.rundir import RunDir
from ringside.words import say

Changes = dict[Any, Any]
FILE_TYPES = ["image", ".tif", ".tiff", ".bmp", ".ppm", ".pgm"]

# The second number lets the same picture be chosen twice.
CHOOSE_SAMPLE = """
element.addEventListener('click', (event) => {
  const button = event.target.closest('button[data-sample]');
  if (!button) return;
  props.value = `${button.dataset.sample}:${Date.now()}`;
  trigger('submit');  // `change` would fire twice: for the value too
});
"""


@dataclass(frozen=True)
class TryParts:
    """The components of the card; `trial` is the id of the trial that this tab shows."""

    box: gr.Column
    heading: gr.HTML
    upload: gr.File
    take: gr.Button
    samples: gr.HTML
    results: gr.HTML
    elsewhere: gr.HTML
    trial: gr.Textbox

    def polled(self) -> list[Any]:
        """What a poll may change."""
        return [self.box, self.heading, self.take, self.samples, self.results, self.elsewhere]


def draw_trying() -> TryParts:
    """Lay the card out; it is shown once the run has a checkpoint."""
    with gr.Column(visible=False, elem_id="try", elem_classes="rs-card") as box:
        heading = block("try-heading")
        block("try-lead", soft(say("try.lead")))
        with gr.Row(elem_classes="rs-columns", equal_height=False):
            with gr.Column(scale=20, min_width=280):
                upload = gr.File(
                    label=say("field.upload", n=MAX_PICTURES, mb=MAX_PICTURE_BYTES // 1_000_000),
                    elem_id="field-upload",
                    file_count="multiple",
                    file_types=FILE_TYPES,
                    height=150,
                )
                take = gr.Button(say("try.take"), elem_id="take-samples", size="md", scale=0)
                samples = gr.HTML(
                    "",
                    html_template="${cards}",
                    cards="",
                    js_on_load=CHOOSE_SAMPLE,
                    apply_default_css=False,
                    elem_id="samples",
                )
            with gr.Column(scale=27, min_width=280):
                results = block("trial", trial_panel_empty())
        elsewhere = block("try-elsewhere")
    return TryParts(
        box, heading, upload, take, samples, results, elsewhere, hidden("trial-id")
    )  # fmt: skip


def trial_panel_empty() -> str:
    """What stands where answers will be."""
    return soft(say("try.nothing_yet"))


class TryHandlers:
    """What the card does; every trial and every look into the data works in the background."""

    def __init__(self, parts: TryParts, opened: OpenedRun) -> None:
        self.parts, self.run, self.settings = parts, opened, opened.settings

    def connect(self) -> None:
        """Give the card's events their handlers; called inside the page's context."""
        parts, who = self.parts, self.run.who()
        answers = [parts.trial, parts.results]
        parts.upload.upload(
            self.try_uploads, who | {parts.upload}, [*answers, parts.upload],
            api_name="try_uploads", **QUEUED,
        )  # fmt: skip
        parts.samples.submit(
            self.try_sample, who | {parts.samples}, answers, api_name="try_sample", **QUEUED
        )
        parts.take.click(self.take, who, self.run.pulse, api_name="take", **QUEUED)

    def changes(self, view: RunView, trial_id: str | None, seen: dict[str, Any]) -> Changes:
        """What the browser does not hold yet, noting it in `seen`."""
        parts, samples = self.parts, self.settings.samples.state(view.id)
        trial = self.settings.trials.state(trial_id)
        cards = sample_cards(samples)
        texts = {
            "try_heading": (parts.heading, try_heading(view.checkpoint)),
            "trial": (parts.results, trial_panel(trial) or trial_panel_empty()),
            "elsewhere": (parts.elsewhere, use_elsewhere(view.name, view.checkpoint)),
        }
        is_open, busy = samples.kind != "done", samples.kind == "running"
        # Made only where they are sent: a tick that has nothing new makes none.
        components: dict[str, tuple[Component, Callable[[], Component]]] = {
            "try_box": (parts.box, lambda: gr.Column(visible=view.checkpoint is not None)),
            "samples": (parts.samples, lambda: gr.HTML(cards=cards)),
            "take": (parts.take, lambda: gr.Button(visible=is_open, interactive=not busy)),
        }
        states: dict[str, Any] = {name: text for name, (_, text) in texts.items()}
        states |= {"try_box": view.checkpoint, "samples": cards, "take": samples.kind}
        new = changed(states, seen)
        seen |= {name: digest for name, (_, digest) in new.items()}
        made = {part: make() for name, (part, make) in components.items() if name in new}
        return {**{part: text for name, (part, text) in texts.items() if name in new}, **made}

    @acts("try pictures")
    def try_uploads(self, data: Mapping[Component, Any]) -> Changes:
        """Try what was dropped or chosen; the files are deleted at once."""
        files = [Path(file) for file in data[self.parts.upload] or ()]
        if not files:
            return {}
        try:
            found = self._start(self._run(data), _read(files))
        except RingsideError as error:
            # The field is emptied all the same: its files are gone.
            warn(error)
            found = {}
        finally:
            self._delete(files)
        return {**found, self.parts.upload: None}

    @acts("try a validation picture")
    def try_sample(self, data: Mapping[Component, Any]) -> Changes:
        """Try the validation picture that was clicked."""
        run = self._run(data)
        number = str(data[self.parts.samples] or "").partition(":")[0]
        pictures = self.settings.samples.state(run.id).pictures
        if not (number.isdecimal() and int(number) < len(pictures)):
            raise RingsideError(say("page.stale"))
        return self._start(run, [pictures[int(number)][0]])

    @acts("take validation pictures")
    def take(self, data: Mapping[Component, Any]) -> Changes:
        """Get a few pictures from the validation split."""
        run = self._run(data)
        self.settings.samples.start(run)
        return self.run.look_again()

    def _delete(self, files: Sequence[Path]) -> None:
        """Gradio keeps each upload in a folder of its own, and an empty file beside (6.31)."""
        beside = Path(self.parts.upload.GRADIO_CACHE).glob("tmp*")
        empty = [file for file in beside if file.is_file() and not file.stat().st_size]
        for file in (*files, *empty):
            with suppress(OSError):
                file.unlink()
                if file not in empty:
                    file.parent.rmdir()

    def _run(self, data: Mapping[Component, Any]) -> RunDir:
        run = self.run.asked(data, "try.no_run")
        if checkpoint_of(run) is None:
            raise RunDirError(say("try.no_run", run=run.id))
        return run

    def _start(self, run: RunDir, pictures: Sequence[Picture]) -> Changes:
        trials = self.settings.trials
        trial_id = trials.start(run, pictures)
        return {
            self.parts.trial: trial_id,
            self.parts.results: trial_panel(trials.state(trial_id)),
        }


def _read(files: Sequence[Path]) -> list[Picture]:
    """Nothing is read of more pictures than are tried."""
    if len(files) > MAX_PICTURES:
        raise RingsideError(say("try.too_many", n=len(files), limit=MAX_PICTURES))
    return [Picture(file.name, file.read_bytes()) for file in files]
