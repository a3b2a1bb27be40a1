"""How the page is wired: names, visibility, pages, words, help."""

from __future__ import annotations

import dataclasses
import re
import warnings
from pathlib import Path

import gradio as gr
import pytest

from app.page import PageSettings, build
from app.page.draw.train import strategy_about, strategy_cards
from app.page.frame import careful, changed, inform, quiet, warn
from app.page.train.form import Form
from app.views.form import Card, Strategies
from ringside.errors import RingsideError
from ringside.words import catalogue

PAGE = Path(__file__).parents[2] / "app"


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    return PageSettings(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def site(settings):
    """Built with every warning an error: Gradio warns where it silently drops an argument."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return build(settings)


def test_every_event_is_named_and_private(site):
    names = [event.api_name for event in site.fns.values()]
    assert len(set(names)) == len(names)
    assert set(names) == {
        "open_train", "settle", "plan", "data", "data_plan", "check_data", "stop_check",
        "poll_check", "try_uploads", "try_sample", "take", "preview", "start", "start_open",
        "start_baseline", "start_baseline_open", "start_after_baseline",
        "start_after_baseline_open", "poll_gpus", "open_runs", "tick_run", "poll_run", "resend",
        "stop",
        "after_epoch", "checkpoint", "dump_stacks", "resume", "resume_open",
        "profile", "open_compare", "compare", "compare_address", "poll_compare",
        "redraw_curves", "open_doctor", "poll_doctor",
        "doctor_of", "check_machine", "ask_to_measure", "measure_run", "not_now",
        "stop_measuring", "take_traces", "find_runs", "clean_up", "save_notes", "archive",
        "ask_to_delete", "keep_run", "delete_run", "delete_open", "move_in_queue", "pause_queue",
        "resume_queue", "language_of_train", "language_of_runs", "language_of_compare",
        "language_of_doctor", "language_of_library", "open_library", "preset_sources",
        "show_preset",
        "preset_difference", "name_preset", "clone_preset", "rename_preset", "ask_to_delete_preset",
        "keep_preset", "delete_preset", "bring_back", "edit_preset", "edit_as", "check_preset",
        "save_preset", "cancel_preset", "read_preset_file", "look_at_import",
        "save_import", "show_playbook", "playbook_difference", "make_playbook", "poll_making",
        "import_playbook", "unpack_playbook", "ask_to_remove", "keep_playbook", "remove_playbook",
        "replay_playbook", "replay_playbook_open", "playbook_of_run", "playbook_of_run_open",
        "playbook_of_runs", "playbook_of_runs_open", "name_form", "save_form", "close_saving",
        "time_presets", "stop_timing", "poll_timing",
    }  # fmt: skip
    assert {event.api_visibility for event in site.fns.values()} == {"private"}


def test_pollers_do_not_queue_and_do_not_wait_for_each_other(site):
    for event in site.fns.values():
        if event.api_name in (
            "poll_run", "tick_run", "resend", "open_runs", "plan", "data", "data_plan",
            "poll_check",
            "compare", "poll_compare", "open_compare", "redraw_curves", "poll_doctor",
            "open_doctor", "settle", "find_runs", "open_library", "show_preset", "check_preset",
            "show_playbook", "poll_making", "preset_difference", "playbook_difference",
            "poll_timing",
        ):  # fmt: skip
            assert not event.queue
            assert event.concurrency_limit is None


def test_no_event_reaches_into_another_page(site):
    for event in site.fns.values():
        touched = {part.page for part in (*event.inputs, *event.outputs)}
        assert touched <= {event.page or ""}


def test_every_field_has_a_label_and_help(site):
    kinds = (
        gr.Textbox, gr.Number, gr.Dropdown, gr.Checkbox, gr.CheckboxGroup, gr.Radio, gr.Slider,
    )  # fmt: skip
    fields = [part for part in site.blocks.values() if isinstance(part, kinds)]
    shown = [part for part in fields if part.visible != "hidden"]
    assert len(shown) >= 12
    for part in shown:
        assert part.label, part.elem_id
        assert part.info, part.elem_id
        assert part.elem_id.startswith("field-")


def test_every_field_of_the_form_has_words():
    words = catalogue()
    for field in dataclasses.fields(Form):
        if field.name != "request_id":
            assert f"field.{field.name}" in words
            assert f"help.{field.name}" in words


def test_buttons_and_places_have_an_id(site):
    kinds = (gr.Button, gr.HTML, gr.LinePlot, gr.Code)
    assert all(part.elem_id for part in site.blocks.values() if isinstance(part, kinds))


def test_the_token_is_on_every_page_that_changes_something(site, settings):
    tokens = [part for part in site.blocks.values() if part.elem_id == "token"]
    assert {part.page for part in tokens} == {"", "runs", "compare", "doctor", "library"}
    assert {part.value for part in tokens} == {settings.token}
    for event in site.fns.values():
        if event.api_name in (
            "start", "start_baseline", "start_after_baseline", "stop", "profile", "check_data",
            "after_epoch", "checkpoint", "dump_stacks", "resume", "stop_check", "try_uploads",
            "try_sample", "take", "check_machine", "measure_run", "stop_measuring", "take_traces",
            "clean_up", "save_notes", "archive", "delete_run", "move_in_queue", "pause_queue",
            "resume_queue", "save_form", "save_preset", "save_import", "delete_preset",
            "bring_back",
            "clone_preset", "rename_preset", "make_playbook", "import_playbook", "remove_playbook",
            "replay_playbook", "unpack_playbook", "playbook_of_run", "playbook_of_runs",
            "time_presets", "stop_timing",
        ):  # fmt: skip
            assert any(part.elem_id == "token" for part in event.inputs)


def test_every_sentence_comes_from_the_catalogue():
    asked = set()
    for path in PAGE.rglob("*.py"):
        if path.parts[-2] != "commands" and path.name != "cli.py":
            asked |= set(re.findall(r"\bsay\(\s*\"([a-z]+\.[a-z0-9_-]+)\"", path.read_text()))
    assert len(asked) > 80
    assert asked <= set(catalogue())


def test_only_what_changed_is_sent():
    new = changed({"a": 1, "b": [2]}, {})
    digests = {name: digest for name, (_, digest) in new.items()}
    assert changed({"a": 1, "b": [3]}, digests).keys() == {"b"}
    assert changed({"a": 1, "b": [2]}, digests) == {}


@pytest.mark.parametrize("wrap", [careful, quiet])
@pytest.mark.parametrize("error", [RingsideError("Choose less."), ZeroDivisionError()])
def test_an_error_never_leaves_a_handler(wrap, error, monkeypatch):
    monkeypatch.setattr(gr, "Warning", lambda *_, **__: None)

    def handler(value):
        raise error

    assert wrap(handler)(1) == gr.skip()
    assert wrap(dict)() == gr.skip()


def test_an_unexpected_error_is_told_calmly(monkeypatch):
    told = []
    monkeypatch.setattr(gr, "Warning", lambda text, **_: told.append(text))

    def handler():
        raise ZeroDivisionError

    careful(handler)()
    assert "ZeroDivisionError" in told[0]
    assert "your runs are not affected" in told[0]


@pytest.mark.parametrize("kind", ["Warning", "Info"])
def test_a_toast_shows_markup_as_text_and_commands_as_code(kind, monkeypatch):
    shown = []
    monkeypatch.setattr(gr, kind, lambda html, **_: shown.append(html))
    sentence = "No run '<img src=x>': see `ringside list`."
    warn(RingsideError(sentence)) if kind == "Warning" else inform(sentence)
    assert shown == [
        'No run &#x27;&lt;img src=x&gt;&#x27;: see <code class="rs-code">ringside list</code>.'
    ]


def test_what_comes_from_outside_is_escaped():
    card = Card("x", "<b>t</b>", "<i>", "<u>", "<s>", "GPU", "team")
    html = strategy_cards(Strategies((card,), (), ("<em>fault</em>",)), "x") + strategy_about(card)
    assert not re.search("<(b>t|i>|u>|s>|em)", html)
    assert "&lt;b&gt;t&lt;/b&gt;" in html
