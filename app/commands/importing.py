"""`ringside presets import` and `export`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.commands.reading import print_columns, print_json
from ringside import importing, libraries, preset_store, presets, yaml_text
from ringside.errors import PresetError
from ringside.importing import Import
from ringside.words import say

PASTED = "-"


def import_(
    file: str,
    *,
    name: str | None,
    where: Literal["yours", "team"] | None,
    replaces: bool,
    as_json: bool,
) -> int:
    """Print what became of the file and keep it where asked; 2 for one that is refused."""
    found = importing.import_text(
        _read(file), origin="pasted" if file == PASTED else Path(file).name, name=name
    )
    if found.refused is not None and not as_json:
        raise PresetError(found.refused)
    saved = _keep(found, where, replaces)
    if as_json:
        print_json(report(found) | {"saved": saved})
        return 0 if found.refused is None else 2
    _print(found)
    print(
        say("presets.saved_as", name=found.name, path=saved)
        if saved else say("presets.nothing_saved")
    )  # fmt: skip
    return 0


def report(found: Import) -> dict[str, Any]:
    """The frozen shape of `presets import --json`, without `saved`."""
    content = None if found.preset is None else msgspec.to_builtins(found.preset.file)
    return {
        "name": found.name,
        "kind": found.kind,
        "preset": content,
        "changes": msgspec.to_builtins(found.changes),
        "warnings": list(found.warnings),
        "refused": found.refused,
    }


def export(name: str, target: Path, *, accelerate: bool) -> None:
    """Copy a preset's file, or write Accelerate's view of it and say what cannot stand there."""
    preset = presets.Library().get(name)
    text = presets.accelerate_text(preset).encode() if accelerate else None
    left = presets.beyond_accelerate(preset) if accelerate else []
    if str(target) == PASTED:
        sys.stdout.write((text or Path(preset.path).read_bytes()).decode("utf-8-sig"))
    else:
        print(say("terminal.wrote", path=preset_store.export(preset, target, text)))
    if left:
        print(say("presets.beyond", names=", ".join(left)), file=sys.stderr)


def _read(file: str) -> bytes:
    if file == PASTED:
        return sys.stdin.buffer.read(yaml_text.MAX_BYTES + 1)
    return yaml_text.read_bytes(Path(file))


def _keep(found: Import, where: Literal["yours", "team"] | None, replaces: bool) -> str | None:
    if found.refused is not None or not (where or replaces):
        return None
    if replaces:
        before = presets.Library().get(found.name)
        return preset_store.replace(before, found.text).path
    folder = _team_folder() if where == "team" else None
    return preset_store.save(found.name, found.text, folder=folder).path


def _team_folder() -> Path:
    for source in libraries.sources():
        if source.origin == libraries.TEAM and not source.place.startswith("hf://"):
            return Path(source.place)
    raise PresetError(f"--team needs a folder in {libraries.VARIABLE}, and it names none.")


def _print(found: Import) -> None:
    about = found.preset.about if found.preset else None
    kind = say(f"presets.kind_{found.kind or 'preset'}")
    told = say("presets.kind_and_title", kind=kind, title=about.title) if about else kind
    print(say("terminal.figure", label=found.name, value=told))
    if found.changes:
        print_columns([
            (str(one.line or ""), one.key, say(f"presets.action_{one.action}"), one.note)
            for one in found.changes
        ])  # fmt: skip
    for warning in found.warnings:
        print(say("terminal.note", sentence=warning))
