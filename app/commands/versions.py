"""`ringside presets clone`, `rename`, `delete`, `history` and `diff`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from app.commands.reading import print_columns, print_json
from ringside import preset_differences, preset_store, presets
from ringside.errors import PresetError, RunDirError
from ringside.preset_store import Version
from ringside.rundir import find_run, runs_root
from ringside.spec import RunSpec
from ringside.words import say


def clone(name: str, new: str) -> None:
    """Copy a preset into the user's library."""
    copy = preset_store.clone(presets.Library().get(name), new)
    print(say("presets.cloned", name=name, new=copy.name, path=copy.path))


def rename(name: str, new: str) -> None:
    """Give a preset another name."""
    kept = preset_store.rename(presets.Library().get(name), new)
    print(say("presets.renamed", name=name, new=kept.name, path=kept.path))


def delete(name: str) -> None:
    """Take a preset out of its library."""
    kept = preset_store.delete(presets.Library().get(name))
    print(say("presets.deleted", name=name, path=kept))


def history(name: str, *, with_diff: bool, as_json: bool) -> None:
    """Print the saved versions, the newest first."""
    found = preset_store.versions(presets.Library().get(name))
    if as_json:
        print_json([msgspec.to_builtins(one) for one in found])
        return
    if not with_diff:
        print_columns([_line(one) for one in found])
        return
    for one, before in zip(found, [*found[1:], None], strict=True):
        print("  ".join(_line(one)))
        if before is not None:
            print("".join(f"    {line}\n" for line in _changed(before, one)), end="")


def diff(first: str, second: str, *, everything: bool, as_json: bool) -> None:
    """Print the settings in which two differ."""
    found = preset_differences.pairs(_content(first), _content(second))
    shown = [one for one in found if everything or one.differs]
    if as_json:
        print_json([{"name": one.name, first: one.first, second: one.second} for one in shown])
        return
    if not shown:
        print(say("presets.same_settings", first=first, second=second))
        return
    rows = [(one.name, _value(one.first), _value(one.second)) for one in shown]
    print_columns([("", first, second), *rows])


def _content(text: str) -> presets.PresetFile | RunSpec:
    """The content of a preset, else what a run asked for."""
    library = presets.Library()
    if text in library.presets:
        return library.presets[text].file
    try:
        run = find_run(runs_root(), text)
    except RunDirError:
        library.get(text)  # says which name is near
        raise
    spec = run.read(run.spec, RunSpec)
    if spec is None:
        raise PresetError(f"{run.id} has no readable spec.json and cannot be compared.")
    return spec


def _line(version: Version) -> tuple[str, str, str, str]:
    present = say("library.present") if version.is_present else ""
    moment = (version.saved or "–")[:19].replace("T", " ")
    return moment, version.checksum[:12], present, version.path


def _changed(before: Version, after: Version) -> Sequence[str]:
    old, new = (
        Path(one.path).read_text(encoding="utf-8-sig").splitlines() for one in (before, after)
    )
    lines = difflib.unified_diff(old, new, n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def _value(value: Any) -> str:
    return "–" if value is None else value if isinstance(value, str) else json.dumps(value)
