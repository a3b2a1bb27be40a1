"""Commands of the preset library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.commands.reading import print_columns, print_json
from ringside import hub_library, libraries, presets
from ringside.errors import PresetError
from ringside.rundir import iter_files, runs_root, write_atomic
from ringside.words import say

if TYPE_CHECKING:
    from ringside.shelf.measured import Measured, Trial

SHORT_CHECKSUM = 12
COLUMNS = ("preset", "what", "devices", "origin", "checksum", "author")


def list_presets(*, as_json: bool) -> None:
    """Print all presets."""
    library = presets.Library()
    places = {source.place: libraries.provenance(source) for source in library.sources}
    if as_json:
        from ringside.shelf.measured import trials

        found = trials(runs_root())
        print_json([summary_json(preset, library, places, found) for preset in library])
    else:
        print_columns([COLUMNS, *map(_row, library)])
        for name, plain in library.shadowed.items():
            holder = library.presets[plain].origin
            print(f"{name}: the name {plain} belongs to the {holder} preset")
        for source in library.sources:
            if source.origin == presets.TEAM and source.folder is not None:
                print(f"{source.prefix}: {places[source.place]}")
    for fault in library.faults:
        print(f"left out: {fault}", file=sys.stderr)


def summary_json(
    preset: presets.Preset,
    library: presets.Library,
    places: dict[str, str],
    found: Sequence[Trial],
) -> dict[str, object]:
    """The frozen shape of a line of `presets list --json`."""
    from ringside.shelf.measured import measured

    return {
        "name": preset.name,
        "title": preset.about.title,
        "devices": preset.about.devices,
        "origin": preset.origin,
        "source": places.get(preset.source, preset.source),
        "checksum": preset.checksum,
        "author": preset.about.author or None,
        "shadowed_by": library.shadowed.get(preset.name),
        "measured": msgspec.to_builtins(measured(preset, found)),
    }


def _row(preset: presets.Preset) -> tuple[str, ...]:
    about, checksum = preset.about, preset.checksum[:SHORT_CHECKSUM]
    return preset.name, about.title, ", ".join(about.devices), preset.origin, checksum, about.author


def show(name: str, *, as_json: bool) -> None:
    """Print one preset."""
    from ringside.shelf.measured import measured, trials

    preset = presets.Library().get(name)
    found = measured(preset, trials(runs_root()))
    if as_json:
        content = msgspec.to_builtins(preset.file)
        rows = msgspec.to_builtins(found)
        print_json({"name": preset.name, "origin": preset.origin, "path": preset.path, **content,
                    "measured": rows})  # fmt: skip
        return
    about = preset.about
    print(f"{preset.name}: {about.title} ({preset.origin}, {preset.path})")
    print(f"why     {about.why}\nwhen    {about.when}\nlimits  {about.limits}")
    print(f"devices {', '.join(about.devices)}")
    _print_measured(found)
    print()
    print(Path(preset.path).read_text(encoding="utf-8-sig"))


def _print_measured(found: Sequence[Measured]) -> None:
    from ringside.shelf.measured import words_of

    for row in found:
        print(say("measured.line", sentence=words_of(row)))
    if not found:
        print(say("measured.nothing"))


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


def fetch() -> None:
    """Fetch every library of the Hub; PresetError when one of them cannot be reached."""
    addresses = [text for text in libraries.team_places() if hub_library.is_address(text)]
    if not addresses:
        raise PresetError(
            f"{libraries.VARIABLE} names no data set of the Hub, such as "
            "hf://datasets/OWNER/NAME@REVISION."
        )
    for text in addresses:
        address = hub_library.parse_address(text)
        if isinstance(address, str):
            raise PresetError(address)
        pin = hub_library.fetch(address)
        found = len(list(iter_files(Path(pin.folder), "*.yaml")))
        print(f"{address.text}: {found} presets at commit {pin.commit}")


def _rendered(library: presets.Library) -> list[tuple[Path, str]]:
    folder = presets.built_in_folder()
    built_in = [preset for preset in library if preset.origin == presets.BUILT_IN]
    return [(folder / f"{p.name}.yaml", presets.render(p)) for p in built_in]


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text
