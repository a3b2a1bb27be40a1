"""The fields of the launch form: drawn here, and read by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import gradio as gr
from gradio.components import Component

from app.page.draw import heading
from app.page.draw.before import ACCEPT
from app.page.draw.train import strategy_cards
from app.page.frame import block
from app.page.settings import PageSettings
from app.views.data import source_choices
from app.views.fields import BESIDE, LEAVE_OUT, WAIT
from app.views.form import main_presets, strategies
from app.views.gpus import gpu_choices
from ringside.models import SUGGESTED, model_names
from ringside.words import say

DEFAULT_MODEL = "resnet50"
DEFAULT_EPOCHS = 3
SEPARATORS = ("", "newline", "semicolon", "bar", "comma", "none")
"""As `--separator` takes them; empty: by what the cells look like."""

PRECISIONS = ("no", "fp16", "bf16")

# The chosen card is the component's value. The cards come from the server, the choice is made here.
CHOOSE_CARD = """
const show = () => element.querySelectorAll('input[name=strategy]').forEach((input) => {
  input.checked = input.value === props.value;
  const place = input.parentElement.querySelector('.rs-estimate');
  const words = (props.estimates || {})[input.value] || '';
  if (place && place.textContent !== words) place.textContent = words;
});
element.addEventListener('change', (event) => {
  if (event.target.name !== 'strategy') return;
  props.value = event.target.value;
  trigger('change');
});
watch(['value', 'cards', 'estimates'], show);
// New cards may be drawn after the watcher was told of them.
new MutationObserver(show).observe(element, {childList: true, subtree: true});
show();
"""


@dataclass(frozen=True)
class Form:
    """The fields; the attribute's name is the name of the value."""

    source: gr.Dropdown
    folder: gr.Textbox
    separator: gr.Dropdown
    bad_files: gr.Radio
    preset: gr.HTML
    model: gr.Dropdown
    epochs: gr.Number
    batch: gr.Number
    processes: gr.Number
    image_size: gr.Number
    seed: gr.Number
    learning_rate: gr.Number
    precision: gr.Dropdown
    gpus: gr.CheckboxGroup
    weights: gr.Textbox
    profile: gr.Number
    time_limit: gr.Textbox
    retry: gr.Checkbox
    keep_global_batch: gr.Checkbox
    overrides: gr.Textbox
    when_busy: gr.Radio
    accepted: gr.HTML
    request_id: gr.Textbox

    def components(self) -> dict[str, Component]:
        """Every field by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def defaults(self) -> dict[str, Any]:
        """What a fresh form holds; the browser would send 0 for a number that is empty."""
        return {name: component.value for name, component in self.components().items()}

    def filled(self, values: Mapping[str, Any]) -> dict[Component, Any]:
        """What puts these values into their fields; all else about the fields stays."""
        found: dict[Component, Any] = {}
        for name, value in values.items():
            part = getattr(self, name)
            more: dict[str, Any] = {"visible": True} if name == "folder" else {}
            if isinstance(part, gr.Number):
                more["placeholder"] = str(value)
            found[part] = type(part)(value=value, **more)
        return found

    def fits(self, name: str, value: object) -> bool:
        """Whether a field can show the value; what an address says may be anything."""
        part = getattr(self, name)
        if isinstance(part, gr.Checkbox):
            return isinstance(value, bool)
        if isinstance(part, gr.Number):
            return isinstance(value, int | float) and not isinstance(value, bool)
        return isinstance(value, list if isinstance(part, gr.CheckboxGroup) else str)

    def left_open(self) -> tuple[str, ...]:
        """The numbers that may stay empty: Ringside then chooses."""
        return ("batch", "processes", "image_size", "learning_rate", "profile")

    def advanced(self) -> tuple[str, ...]:
        """The fields below the fold."""
        return (
            "learning_rate", "weights", "profile", "time_limit", "retry", "keep_global_batch",
            "overrides",
        )  # fmt: skip

    def values(self, data: Mapping[Component, Any]) -> dict[str, Any]:
        """What a handler got, by the name of the field."""
        return {name: data[component] for name, component in self.components().items()}


def field(kind: type[Component], name: str, **details: Any) -> Any:
    """An input with the label and the help text of its name."""
    return kind(
        label=say(f"field.{name}"),
        info=say(f"help.{name}"),
        elem_id=f"field-{name.replace('_', '-')}",
        **details,
    )


def draw_data() -> tuple[dict[str, Component], dict[str, Any]]:
    """The first choice: its fields, and what shows the data and the check of them."""
    with gr.Column(elem_classes="rs-card", elem_id="data-card"):
        block("data-heading", heading(say("train.data")))
        choices = source_choices()
        fields = {
            "source": field(
                gr.Dropdown,
                "source",
                choices=choices,
                value=choices[0][1],
                allow_custom_value=True,
            ),
            "folder": field(
                gr.Textbox, "folder", visible=False, max_lines=1, placeholder="/data/photos"
            ),
        }
        with gr.Accordion(
            say("train.advanced"), open=False, visible=False, elem_id="data-advanced"
        ) as fold:
            fields["separator"] = field(
                gr.Dropdown,
                "separator",
                choices=[(say(f"separator.{name or 'auto'}"), name) for name in SEPARATORS],
                value="",
            )
        shown = {"data": block("data-facts"), "data_fold": fold, **_draw_check()}
        fields["bad_files"] = field(
            gr.Radio,
            "bad_files",
            choices=[(say(f"check.{name}"), name) for name in ("stop", LEAVE_OUT)],
            value="stop",
            visible=False,
        )
        shown["check_details"] = block("check-details")
        return fields, shown


def _draw_check() -> dict[str, Any]:
    with gr.Row(elem_classes="rs-row rs-buttons"):
        start = gr.Button(say("check.start"), elem_id="check", size="md", scale=0, min_width=150)
        stop = gr.Button(
            say("check.stop_checking"), elem_id="check-stop", size="md", scale=0, min_width=150,
            visible=False,
        )  # fmt: skip
    return {"check_start": start, "check_stop": stop, "check": block("check-report")}


def draw_strategies(settings: PageSettings) -> tuple[gr.HTML, gr.HTML]:
    """The second choice: one card a preset, and a place for words about the chosen one."""
    block("strategy-heading", heading(say("train.strategy")))
    first = main_presets(settings.hardware)[0]
    preset = gr.HTML(
        first,
        label=say("field.preset"),
        html_template="${cards}",
        cards=strategy_cards(strategies(settings.hardware), first),
        estimates={},
        js_on_load=CHOOSE_CARD,
        apply_default_css=False,
        elem_id="field-preset",
    )
    return preset, block("strategy-about")


def draw_run(settings: PageSettings) -> tuple[dict[str, Component], gr.Accordion]:
    """The third choice, and what has a good default folded away in the accordion.

    On a machine with GPUs they are chosen one by one, elsewhere the number of processes.
    """
    has_gpus = bool(settings.hardware.gpus)
    block("run-heading", heading(say("train.run")))
    known = sorted(model_names() - set(SUGGESTED))
    with gr.Row(elem_classes="rs-row"):
        model = field(
            gr.Dropdown,
            "model",
            choices=[*SUGGESTED, *known],
            value=DEFAULT_MODEL,
            allow_custom_value=True,
            min_width=180,
        )
        precision = field(
            gr.Dropdown, "precision", choices=precision_choices(None), value="", min_width=150
        )
    with gr.Row(elem_classes="rs-row"):
        numbers = {
            "epochs": _number("epochs", value=DEFAULT_EPOCHS),
            "batch": _number("batch"),
            "processes": _number("processes", visible=not has_gpus),
        }
    gpus = field(
        gr.CheckboxGroup,
        "gpus",
        choices=gpu_choices(settings.hardware, settings.runs_root, ()),
        value=[],
        visible=has_gpus,
    )
    folded, advanced = _draw_advanced()
    fields = {"model": model, "precision": precision, "gpus": gpus, **numbers, **folded}
    return fields, advanced


def _draw_advanced() -> tuple[dict[str, Component], gr.Accordion]:
    with gr.Accordion(say("train.advanced"), open=False, elem_id="advanced") as advanced:
        with gr.Row(elem_classes="rs-row"):
            fields = {"image_size": _number("image_size"), "seed": _number("seed")}
        fields["learning_rate"] = field(
            gr.Number, "learning_rate", value=None, placeholder=say("train.auto"), min_width=100
        )
        fields["weights"] = field(
            gr.Textbox, "weights", max_lines=1, placeholder="last, amber-fox, /data/w.pth"
        )
        with gr.Row(elem_classes="rs-row"):
            fields["profile"] = _number("profile")
            fields["time_limit"] = field(
                gr.Textbox, "time_limit", max_lines=1, placeholder="2h30m", min_width=100
            )
        for name in ("retry", "keep_global_batch"):
            fields[name] = field(gr.Checkbox, name, value=False)
        fields["overrides"] = field(
            gr.Textbox, "overrides", lines=2, placeholder="optimizer=sgd\nwarmup_epochs=1"
        )
    return fields, advanced


def draw_before() -> dict[str, Component]:
    """What stands in the way, and what to do while others use the devices."""
    accepted = gr.HTML(
        "[]",
        label=say("field.accepted"),
        html_template="${list}",
        list="",
        js_on_load=ACCEPT,
        apply_default_css=False,
        elem_id="field-accepted",
    )
    when_busy = field(
        gr.Radio,
        "when_busy",
        choices=[(say(f"train.busy_{name}"), name) for name in (WAIT, BESIDE)],
        value=WAIT,
        visible=False,
    )
    return {"accepted": accepted, "when_busy": when_busy}


def precision_choices(own: str | None) -> list[tuple[str, str]]:
    """The preset's own precision first, by name where it is known."""
    word = say(f"precision.{own}") if own else ""
    first = say("train.precision_own", precision=word) if own else say("train.precision_preset")
    return [(first, ""), *((say(f"precision.{name}"), name) for name in PRECISIONS)]


def _number(name: str, value: int | None = None, **details: Any) -> gr.Number:
    number: gr.Number = field(
        gr.Number,
        name,
        value=value,
        precision=0,
        placeholder=say("train.auto"),
        min_width=100,
        **details,
    )
    return number
