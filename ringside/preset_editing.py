"""The text of a preset: made of what a run asked for, as fields of a form, and what is wrong in it.

A person edits either the YAML or a form of a few fields; both are the same file, and each can be
made from the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ringside import yaml_text
from ringside.errors import PresetError, SpecError
from ringside.importing.credentials import refuse_credentials
from ringside.overrides import locate, read_value
from ringside.preset_differences import PARTS, settings
from ringside.presets import About, Library, PresetFile, parse_preset
from ringside.spec import FsdpConfig, RunSpec, TrainingSettings
from ringside.words import say

ORIGIN = "preset"
COUNT = "accelerate.num_processes"
_PLAIN = {
    "format": 1,
    "about": {"title": "-", "why": "", "when": ""},
    "accelerate": {},
}
"""A preset without a fault, into which one part after the other is put."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a text, in a sentence; `line` counts from 1, None where there is none."""

    sentence: str
    line: int | None = None


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """A preset as a form: its words, and its settings as lines of `KEY=VALUE`."""

    title: str
    why: str
    when: str
    limits: str = ""
    author: str = ""
    devices: tuple[str, ...] = ("cuda", "cpu")
    settings: str = ""


def problems(text: str) -> tuple[Problem, ...]:
    """All faults that can be told apart, by line; () for a text that is a preset.

    The schema's check stops at the first fault, so each part is checked for itself.
    """
    try:
        document = yaml_text.load_text(text, origin=ORIGIN)
        refuse_credentials(text, document.value)
    except PresetError as error:
        return (_problem(error),)
    found = list(_problems(document))
    if not found:
        try:
            parse_preset(text, name=ORIGIN, origin="file")
        except PresetError as error:
            found = [_problem(error)]
    return tuple(sorted(dict.fromkeys(found), key=lambda one: one.line or 0))


def fields_of(text: str) -> Fields:
    """The form of a preset's text; PresetError for a text that is none."""
    preset = parse_preset(text, name=ORIGIN, origin="file")
    values = settings(preset.file)
    lines = (
        f"{name}={_written(value)}"
        for name, value in values.items()
        if _key(name) in {_key(given) for given in preset.given}
    )
    return Fields(**msgspec.to_builtins(preset.about), settings="\n".join(lines))


def with_fields(text: str, fields: Fields) -> str:
    """The text with the form's words and settings; comments at its top stay.

    SpecError or PresetError for a line or a word that cannot be.
    """
    tree = yaml_text.load_text(text, origin=ORIGIN).value
    about = {name: getattr(fields, name).strip() for name in ("title", "why", "when")}
    about |= {name: getattr(fields, name).strip() for name in ("limits", "author")}
    tree = {
        "format": tree.get("format", 1),
        "about": {**about, "devices": list(fields.devices)},
        **_parts(fields.settings),
    }
    made = "".join(_head(text)) + yaml_text.dump(tree)
    parse_preset(made, name=ORIGIN, origin="file")
    return made


def preset_of(spec: RunSpec, about: About) -> PresetFile:
    """What a run asked for, as a preset.

    Model, data, batch, epochs and seed belong to the run; so does a number of processes that a
    flag or the machine gave.
    """
    stated = spec.sources.get(COUNT, "preset") == "preset"
    count = spec.accelerate.num_processes if stated else None
    known = Library().presets.get(spec.preset)
    devices = known.about.devices if known is not None else (spec.device,)
    return PresetFile(
        about=msgspec.structs.replace(about, devices=devices),
        accelerate=msgspec.structs.replace(spec.accelerate, num_processes=count),
        training=spec.training,
        environment=spec.environment,
    )


def preset_text(file: PresetFile) -> str:
    """The YAML of a preset: every setting that is not at its default."""
    tree = msgspec.to_builtins(file)
    usual = msgspec.to_builtins(TrainingSettings())
    training = {name: value for name, value in tree["training"].items() if value != usual[name]}
    accelerate = {name: value for name, value in tree["accelerate"].items() if value is not None}
    content = {"format": file.format, "about": tree["about"], "accelerate": accelerate}
    content |= {"training": training} if training else {}
    content |= {"environment": tree["environment"]} if tree["environment"] else {}
    return yaml_text.dump(content)


def _problems(document: yaml_text.Document) -> Iterator[Problem]:
    value = document.value
    if not isinstance(value, dict) or value.keys() & set(PARTS) == set():
        yield Problem(sentence=say("editing.no_preset"))
        return
    known = PresetFile.__struct_fields__
    trees = [_PLAIN | {name: inner} for name, inner in value.items() if name in known]
    trees.append(_PLAIN | {name: inner for name, inner in value.items() if name not in known})
    missing = [name for name in ("about", "accelerate") if name not in value]
    trees += [{key: inner for key, inner in _PLAIN.items() if key != name} for name in missing]
    for tree in trees:
        try:
            yaml_text.Document(tree, document.lines, ORIGIN).convert(PresetFile)
        except PresetError as error:
            yield _problem(error)


def _problem(error: PresetError) -> Problem:
    """A reader's refusal, without the name of a file that is none here."""
    if isinstance(error, yaml_text.FaultError):
        return Problem(sentence=error.reason, line=error.line)
    return Problem(sentence=str(error))


def _key(name: str) -> str:
    """A setting's name with its part, however many mappings stand between; FSDP's have no part."""
    part, _, rest = name.partition(".")
    return f"{part}.{rest.rpartition('.')[2]}" if rest else f"accelerate.{name}"


def _parts(lines: str) -> dict[str, dict[str, Any]]:
    tree: dict[str, dict[str, Any]] = {"accelerate": {}}
    for line in filter(None, map(str.strip, lines.splitlines())):
        key, equals, text = (part.strip() for part in line.partition("="))
        if not equals or not key:
            raise SpecError(say("editing.no_pair", line=line[:60]))
        part, name = ("accelerate", "num_processes") if key == COUNT else locate(key)
        place = tree.setdefault(part, {})
        if name in FsdpConfig.__struct_fields__:
            place = place.setdefault("fsdp_config", {})
        if name in place:
            raise SpecError(say("editing.twice", name=name))
        place[name] = text if part == "environment" else read_value(name, text)
    return tree


def _written(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _head(text: str) -> Iterator[str]:
    for line in text.removeprefix("\ufeff").splitlines(keepends=True):
        if not line.startswith("#"):
            return
        yield line
