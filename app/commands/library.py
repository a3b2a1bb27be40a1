"""Commands of the preset library."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from app.commands.reading import print_columns, print_json
from ringside import presets
from ringside.errors import PresetError
from ringside.rundir import write_atomic


def list_presets(*, as_json: bool) -> None:
    """Print all presets."""
    library = presets.Library()
    if as_json:
        print_json([summary_json(preset) for preset in library])
    else:
        print_columns(
            [
                (preset.name, preset.about.title, ", ".join(preset.about.devices), preset.origin)
                for preset in library
            ]
        )
    for fault in library.faults:
        print(f"left out: {fault}", file=sys.stderr)


def summary_json(preset: presets.Preset) -> dict[str, object]:
    """The frozen shape of a line of `presets list --json`."""
    return {
        "name": preset.name,
        "title": preset.about.title,
        "devices": preset.about.devices,
        "origin": preset.origin,
    }


def show(name: str, *, as_json: bool) -> None:
    """Print one preset."""
    preset = presets.Library().get(name)
    if as_json:
        content = msgspec.to_builtins(preset.file)
        print_json({"name": preset.name, "origin": preset.origin, "path": preset.path, **content})
        return
    about = preset.about
    print(f"{preset.name}: {about.title} ({preset.origin}, {preset.path})")
    print(f"why     {about.why}\nwhen    {about.when}\nlimits  {about.limits}")
    print(f"devices {', '.join(about.devices)}\n")
    print(Path(preset.path).read_text(encoding="utf-8-sig"))


def render(name: str | None, *, processes: int | None, check: bool) -> None:
    """Print one rendered file, or write (or check) all of the built-in library."""
    library = presets.Library()
    if name is not None:
        print(presets.render(library.get(name), processes), end="")
        return
    stale = [path.name for path, text in _rendered(library) if _differs(path, text)]
    if check:
        if stale:
            raise PresetError(f"Not current: {', '.join(stale)}; run `ringside presets render`.")
        print("all rendered files are current")
        return
    for path, text in _rendered(library):
        write_atomic(path, text.encode())
    print(f"wrote {len(list(_rendered(library)))} files, {len(stale)} of them changed")


def check(files: list[Path]) -> None:
    """Check every file; faults end the command once all have been looked at."""
    faults = []
    for path in files:
        try:
            print(f"{path}: fine ({presets.load_preset(path).about.title})")
        except PresetError as fault:
            faults.append(str(fault))
    if faults:
        raise PresetError("\n".join(faults))


def import_(file: Path, name: str | None) -> None:
    """Copy a file into the user's library."""
    preset = presets.import_preset(file, name=name)
    print(f"imported {preset.name} into {preset.path}")


def export(name: str, target: Path) -> None:
    """Copy a preset's file out of the library."""
    print(f"wrote {presets.export_preset(presets.Library().get(name), target)}")


def _rendered(library: presets.Library) -> list[tuple[Path, str]]:
    folder = presets.built_in_folder()
    built_in = [preset for preset in library if preset.origin == presets.BUILT_IN]
    return [(folder / f"{p.name}.yaml", presets.render(p)) for p in built_in]


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text
