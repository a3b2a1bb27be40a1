"""Train: three choices and one button."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr
from gradio.components import Component

from app.guard import require_token
from app.page.draw import heading, title
from app.page.draw.train import (
    baseline_panel,
    data_panel,
    plan_panel,
    settings_list,
    strategy_cards,
)
from app.page.frame import PRIVATE, QUICK, block, careful, draw_frame, hidden, quiet
from app.page.settings import PageSettings
from app.views.data import data_facts, source_choices
from app.views.desk import BaselineState
from app.views.form import (
    Plan,
    data_text,
    main_presets,
    plan,
    preview,
    start,
    start_baseline,
    strategies,
)
from ringside.errors import RingsideError
from ringside.models import SUGGESTED, model_names
from ringside.spec import RunSpec
from ringside.words import say

DEFAULT_MODEL = "resnet50"
DEFAULT_EPOCHS = 3

# The chosen card is the component's value. The cards come from the server, the choice is made here.
CHOOSE_CARD = """
const show = () => element.querySelectorAll('input[name=strategy]').forEach(
  (input) => { input.checked = input.value === props.value; });
element.addEventListener('change', (event) => {
  if (event.target.name !== 'strategy') return;
  props.value = event.target.value;
  trigger('change');
});
watch(['value', 'cards'], show);
show();
"""

GO_TO_RUN = "(run) => { if (run) window.location.href = 'runs?run=' + encodeURIComponent(run); }"


@dataclass(frozen=True)
class Form:
    """The fields; the attribute's name is the name of the value."""

    source: gr.Dropdown
    folder: gr.Textbox
    preset: gr.HTML
    model: gr.Dropdown
    epochs: gr.Number
    batch: gr.Number
    processes: gr.Number
    image_size: gr.Number
    seed: gr.Number
    learning_rate: gr.Number
    keep_global_batch: gr.Checkbox
    overrides: gr.Textbox
    request_id: gr.Textbox

    def components(self) -> dict[str, Component]:
        """Every field by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def values(self, data: Mapping[Component, Any]) -> dict[str, Any]:
        """What a handler got, by the name of the field."""
        return {name: data[component] for name, component in self.components().items()}


@dataclass(frozen=True)
class Panels:
    """Everything that is shown and not filled in, and the buttons."""

    data: gr.HTML
    plan: gr.HTML
    start: gr.Button
    preview: gr.Button
    baseline_box: gr.Column
    baseline: gr.HTML
    baseline_start: gr.Button
    preview_box: gr.Column
    command: gr.Code
    preset_file: gr.Code
    accelerate_file: gr.Code
    settings: gr.HTML
    token: gr.Textbox
    go: gr.Textbox


def draw_train(page: gr.Blocks, settings: PageSettings) -> None:
    """Lay the page out and connect it; called inside the page's context."""
    token = draw_frame(settings, "train")
    block("lead", title(say("page.train"), say("train.lead")))
    with gr.Row(elem_classes="rs-columns", equal_height=False):
        with gr.Column(scale=27, min_width=320, elem_classes="rs-stack"):
            data_fields, data = _draw_data()
            preset = _draw_strategies(settings)
        with gr.Column(scale=20, min_width=320, elem_classes="rs-stack"):
            with gr.Column(elem_classes="rs-card", elem_id="run-card"):
                run_fields = _draw_run()
                shown = _draw_plan()
            shown |= _draw_baseline()
    shown |= _draw_preview()
    form = Form(preset=preset, request_id=hidden("request-id"), **data_fields, **run_fields)
    panels = Panels(data=data, token=token, go=hidden("go"), **shown)
    _connect(page, form, panels, settings)


def field(kind: type[Component], name: str, **details: Any) -> Any:
    """An input with the label and the help text of its name."""
    return kind(
        label=say(f"field.{name}"),
        info=say(f"help.{name}"),
        elem_id=f"field-{name.replace('_', '-')}",
        **details,
    )


def _draw_data() -> tuple[dict[str, Component], gr.HTML]:
    with gr.Column(elem_classes="rs-card", elem_id="data-card"):
        block("data-heading", heading(say("train.data")))
        choices = source_choices()
        source = field(
            gr.Dropdown,
            "source",
            choices=choices,
            value=choices[0][1],
            allow_custom_value=True,
        )
        folder = field(gr.Textbox, "folder", visible=False, max_lines=1, placeholder="/data/photos")
        return {"source": source, "folder": folder}, block("data-facts")


def _draw_strategies(settings: PageSettings) -> gr.HTML:
    with gr.Column(elem_classes="rs-card", elem_id="strategy-card"):
        block("strategy-heading", heading(say("train.strategy")))
        first = main_presets(settings.hardware)[0]
        return gr.HTML(
            first,
            label=say("field.preset"),
            html_template="${cards}",
            cards=strategy_cards(strategies(settings.hardware), first),
            js_on_load=CHOOSE_CARD,
            apply_default_css=False,
            elem_id="field-preset",
        )


def _draw_run() -> dict[str, Component]:
    block("run-heading", heading(say("train.run")))
    known = sorted(model_names() - set(SUGGESTED))
    model = field(
        gr.Dropdown,
        "model",
        choices=[*SUGGESTED, *known],
        value=DEFAULT_MODEL,
        allow_custom_value=True,
    )
    with gr.Row(elem_classes="rs-row"):
        numbers = {
            "epochs": _number("epochs", value=DEFAULT_EPOCHS),
            "batch": _number("batch"),
            "processes": _number("processes"),
        }
    with gr.Accordion(say("train.advanced"), open=False, elem_id="advanced"):
        with gr.Row(elem_classes="rs-row"):
            numbers["image_size"] = _number("image_size")
            numbers["seed"] = _number("seed")
        numbers["learning_rate"] = field(
            gr.Number, "learning_rate", value=None, placeholder=say("train.auto"), min_width=100
        )
        keep = field(gr.Checkbox, "keep_global_batch", value=False)
        overrides = field(
            gr.Textbox, "overrides", lines=2, placeholder="optimizer=sgd\nwarmup_epochs=1"
        )
    return {"model": model, **numbers, "keep_global_batch": keep, "overrides": overrides}


def _number(name: str, value: int | None = None) -> gr.Number:
    number: gr.Number = field(
        gr.Number,
        name,
        value=value,
        precision=0,
        placeholder=say("train.auto"),
        min_width=100,
    )
    return number


def _draw_plan() -> dict[str, Any]:
    shown: dict[str, Any] = {"plan": block("plan")}
    with gr.Row(elem_classes="rs-row rs-buttons"):
        shown["start"] = gr.Button(
            say("train.start"), variant="primary", elem_id="start", scale=0, min_width=120
        )
        shown["preview"] = gr.Button(
            say("train.preview"), variant="secondary", elem_id="preview", scale=0, min_width=200
        )
    return shown


def _draw_baseline() -> dict[str, Any]:
    with gr.Column(elem_classes="rs-card", elem_id="baseline-card", visible=False) as box:
        shown = block("baseline")
        button = gr.Button(
            say("train.baseline_start"), elem_id="measure-baseline", size="md", scale=0
        )
    return {"baseline_box": box, "baseline": shown, "baseline_start": button}


def _draw_preview() -> dict[str, Any]:
    with gr.Column(elem_classes="rs-card", elem_id="preview-card", visible=False) as box:
        block("preview-heading", heading(say("train.preview_title")))
        command = _code("train.preview_command", "shell", "preview-command", wrap_lines=True)
        with gr.Row(elem_classes="rs-row"):
            preset = _code("train.preview_preset", "yaml", "preview-preset", max_lines=24)
            accelerate = _code(
                "train.preview_accelerate", "yaml", "preview-accelerate", max_lines=24
            )
        settings = block("preview-settings")
    return {
        "preview_box": box,
        "command": command,
        "preset_file": preset,
        "accelerate_file": accelerate,
        "settings": settings,
    }


def _code(label: str, language: Any, elem_id: str, **details: Any) -> gr.Code:
    return gr.Code(
        label=say(label),
        language=language,
        elem_id=elem_id,
        interactive=False,
        buttons=["copy"],
        show_line_numbers=False,
        min_width=280,
        **details,
    )


def _connect(page: gr.Blocks, form: Form, panels: Panels, settings: PageSettings) -> None:
    handlers = Handlers(form, panels, settings)
    everything = set(form.components().values())
    plan_shown = [
        panels.plan, panels.start, panels.preview, panels.baseline_box, panels.baseline,
        panels.baseline_start, form.batch, form.processes, form.image_size,
    ]  # fmt: skip
    page.load(
        handlers.open, everything, [form.preset, form.request_id, panels.data, *plan_shown],
        api_name="open_train", **QUICK,
    )  # fmt: skip
    gr.on(
        [component.change for name, component in form.components().items() if name != "request_id"],
        handlers.show_plan, everything, plan_shown,
        trigger_mode="always_last", api_name="plan", **QUICK,
    )  # fmt: skip
    gr.on(
        [form.source.change, form.folder.submit, form.folder.blur],
        handlers.show_data, everything, [panels.data, form.folder],
        trigger_mode="always_last", api_name="data", **QUICK,
    )  # fmt: skip
    _connect_buttons(handlers, everything | {panels.token})


def _connect_buttons(handlers: Handlers, inputs: set[Any]) -> None:
    form, panels = handlers.form, handlers.panels
    panels.preview.click(
        handlers.show_preview, inputs,
        [panels.preview_box, panels.command, panels.preset_file, panels.accelerate_file,
         panels.settings],
        show_progress="hidden", api_name="preview", **PRIVATE,
    )  # fmt: skip
    for button, handler, name in (
        (panels.start, handlers.start, "start"),
        (panels.baseline_start, handlers.start_baseline, "start_baseline"),
    ):
        started = button.click(
            handler, inputs, [panels.go, form.request_id],
            show_progress="hidden", concurrency_limit=None, api_name=name, **PRIVATE,
        )  # fmt: skip
        started.success(
            None, panels.go, None, js=GO_TO_RUN, api_name=f"{name}_open", **PRIVATE
        )


class Handlers:
    """What the page does; every method takes the values by component and returns changes."""

    def __init__(self, form: Form, panels: Panels, settings: PageSettings) -> None:
        self.form = form
        self.panels = panels
        self.settings = settings

    @quiet
    def open(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """A fresh page: the library as it is now, the data, the plan, and a new request id."""
        values = self.form.values(data)
        cards = strategy_cards(strategies(self.settings.hardware), values["preset"])
        return {
            self.form.preset: gr.HTML(cards=cards),
            self.form.request_id: uuid.uuid4().hex,
            self.panels.data: _data_html(values),
            **self._plan_changes(values),
        }

    @quiet
    def show_plan(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """The plan in words, the defaults as placeholders, the state of the baseline."""
        return self._plan_changes(self.form.values(data))

    @quiet
    def show_data(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """What is in the chosen data, or the sentence that says why it cannot be used."""
        values = self.form.values(data)
        return {
            self.panels.data: _data_html(values),
            self.form.folder: gr.Textbox(visible=values["source"] == "folder"),
        }

    @careful
    def show_preview(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """Both files and the command, exactly as Start would use them."""
        settings, panels = self.settings, self.panels
        found = preview(self.form.values(data), settings.hardware, settings.runs_root)
        return {
            panels.preview_box: gr.Column(visible=True),
            panels.command: found.command,
            panels.preset_file: found.preset_yaml,
            panels.accelerate_file: found.accelerate_yaml,
            panels.settings: settings_list(found),
        }

    @careful
    def start(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """Start the run and go to its page; pressed twice it is one run."""
        return self._start(start, data)

    @careful
    def start_baseline(self, data: dict[Component, Any]) -> dict[Component, Any]:
        """Start the baseline of what the form asks for."""
        return self._start(start_baseline, data)

    def _start(self, starter: Any, data: dict[Component, Any]) -> dict[Component, Any]:
        require_token(data[self.panels.token], self.settings.token)
        run = starter(self.form.values(data), self.settings.hardware, self.settings.runs_root)
        return {self.panels.go: run.id}

    def _plan_changes(self, values: Mapping[str, Any]) -> dict[Component, Any]:
        found, panels = plan(values, self.settings.hardware), self.panels
        can_start = found.spec is not None
        return {
            panels.plan: plan_panel(found),
            panels.start: gr.Button(interactive=can_start),
            panels.preview: gr.Button(interactive=can_start),
            **self._baseline_changes(found),
            **(self._placeholders(found.spec) if found.spec else {}),
        }

    def _baseline_changes(self, found: Plan) -> dict[Component, Any]:
        panels = self.panels
        if found.spec is None:
            return {panels.baseline_box: gr.Column(visible=False)}
        state: BaselineState = self.settings.desk.baseline_state(found.spec)
        return {
            panels.baseline_box: gr.Column(visible=True),
            panels.baseline: baseline_panel(state),
            panels.baseline_start: gr.Button(visible=state.kind == "none"),
        }

    def _placeholders(self, spec: RunSpec) -> dict[Component, Any]:
        """An empty field shows the value that it stands for."""
        asked = spec.global_batch
        if not spec.keeps_global_batch:
            asked //= spec.training.accumulation_steps
        shown = {
            self.form.batch: asked,
            self.form.processes: spec.num_processes,
            self.form.image_size: spec.data.image_size,
        }
        return {field: gr.Number(placeholder=str(value)) for field, value in shown.items()}


def _data_html(values: Mapping[str, Any]) -> str:
    try:
        return data_panel(data_facts(data_text(values)))
    except RingsideError as error:
        # An empty path is no mistake yet.
        is_empty = values["source"] == "folder" and not values["folder"]
        return data_panel(None, "" if is_empty else str(error))
