"""Commands of the preset library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.commands.printing import padded, width_of
from app.commands.reading import print_columns, print_json
from ringside import hub_library, libraries, presets
from ringside.errors import PresetError
from ringside.rundir import iter_files, runs_root, write_atomic
from ringside.words import say, translated

if TYPE_CHECKING:
    from ringside.shelf.measured import Measured, Trial

SHORT_CHECKSUM = 12
COLUMNS = (
    "column.preset", "presets.what", "column.devices", "presets.origin", "presets.checksum",
    "presets.author",
)  # fmt: skip
"""Keys of the words."""


def list_presets(*, as_json: bool) -> None:
    """Print all presets."""
    library = presets.Library()
    places = {source.place: libraries.provenance(source) for source in library.sources}
    if as_json:
        from ringside.shelf.measured import trials

        found = trials(runs_root())
        print_json([summary_json(preset, library, places, found) for preset in library])
    else:
        print_columns([tuple(map(say, COLUMNS)), *map(_row, library)])
        for name, plain in library.shadowed.items():
            holder = say(f"origin.{library.presets[plain].origin}")
            print(say("presets.shadowed", name=name, plain=plain, holder=holder))
        for source in library.sources:
            if source.origin == presets.TEAM and source.folder is not None:
                print(say("terminal.figure", label=source.prefix, value=places[source.place]))
    for fault in library.faults:
        print(say("presets.left_out", why=fault), file=sys.stderr)


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
    title, origin = _told(preset, "title"), say(f"origin.{preset.origin}")
    return preset.name, title, ", ".join(about.devices), origin, checksum, about.author


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
    origin = say(f"origin.{preset.origin}")
    title = _told(preset, "title")
    print(say("presets.lead", name=preset.name, title=title, origin=origin, path=preset.path))
    _print_about(preset)
    _print_measured(found)
    print()
    print(Path(preset.path).read_text(encoding="utf-8-sig"))


def _told(preset: presets.Preset, part: str) -> str:
    """A part of what a preset says of itself; the words hold those of the built-in ones."""
    text: str = getattr(preset.about, part)
    if preset.origin != presets.BUILT_IN:
        return text
    return translated(f"preset.{preset.name.rpartition(':')[2]}_{part}", text)


def _print_about(preset: presets.Preset) -> None:
    parts = {say(f"presets.{part}"): _told(preset, part) for part in ("why", "when", "limits")}
    parts[say("column.devices")] = ", ".join(preset.about.devices)
    width = max(map(width_of, parts))
    for name, text in parts.items():
        print(f"{padded(name, width)} {text}")


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
        print(say("presets.current"))
        return
    for path, text in _rendered(library):
        write_atomic(path, text.encode())
    print(say("presets.rendered", n=len(list(_rendered(library))), changed=len(stale)))


def check(files: list[Path]) -> None:
    """Check every file; faults end the command once all have been looked at."""
    faults = []
    for path in files:
        try:
            print(say("presets.fine", path=path, title=presets.load_preset(path).about.title))
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
        print(say("presets.fetched", library=address.text, n=found, commit=pin.commit))


def _rendered(library: presets.Library) -> list[tuple[Path, str]]:
    folder = presets.built_in_folder()
    built_in = [preset for preset in library if preset.origin == presets.BUILT_IN]
    return [(folder / f"{p.name}.yaml", presets.render(p)) for p in built_in]


def _differs(path: Path, text: str) -> bool:
    return not path.exists() or path.read_text(encoding="utf-8") != text
