"""The launch form as a preset: what is proposed, and what is kept."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from app.views.fields import Values, request_of
from app.views.form import told
from ringside import preset_store
from ringside.errors import PresetError, RingsideError
from ringside.hardware import Hardware
from ringside.preset_editing import preset_of, preset_text
from ringside.presets import About, Library, Preset
from ringside.request import resolve
from ringside.spec import RunSpec
from ringside.words import say

MAX_TITLE = 80


@dataclass(frozen=True)
class Words:
    """What a person says of a preset."""

    name: str
    title: str
    why: str
    when: str


def proposed(values: Values, hardware: Hardware) -> Words:
    """A free name and words to begin with; PresetError for a form that makes no run."""
    spec = _spec(values, hardware)
    preset = Library().get(spec.preset)
    name = re.sub(r"[^a-z0-9_-]+", "_", preset.name.rpartition(":")[2])
    return Words(
        name=preset_store.free_name(name),
        title=say("library.form_title", title=told(preset, "title"))[:MAX_TITLE],
        why=say("library.form_why", model=spec.model, data=spec.data.label),
        when=say("library.form_when"),
    )


def keep_form(values: Values, hardware: Hardware, words: Words) -> Preset:
    """Save it under a name that is free; PresetError in a sentence for what cannot be saved."""
    spec = _spec(values, hardware)
    preset_store.check_name(words.name)
    given = {"title": words.title, "why": words.why, "when": words.when}
    try:
        about = msgspec.convert(given, About)
    except msgspec.ValidationError as error:
        raise PresetError(say("library.bad_words", why=error)) from None
    return preset_store.save(words.name, preset_text(preset_of(spec, about)).encode())


def _spec(values: Values, hardware: Hardware) -> RunSpec:
    try:
        return resolve(request_of(values), hardware)
    except RingsideError as error:
        raise PresetError(say("library.keep_form_refused", why=error)) from None
