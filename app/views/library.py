"""The presets of the library as the page shows them: the list, one of them, and its versions."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.views import figures
from app.views.form import told
from ringside import libraries, preset_differences, preset_store, yaml_text
from ringside.adaptation import Adaptation, adaptations
from ringside.errors import PresetError, RingsideError
from ringside.hardware import Hardware
from ringside.playbook.store import Entry
from ringside.presets import BUILT_IN, Library, Preset, accelerate_text, beyond_accelerate
from ringside.rundir import RunDir
from ringside.shelf.measured import Trial, measured, words_of
from ringside.spec import RunSpec
from ringside.words import say

SHORT = 12
MAX_VERSIONS = 50
MAX_CHANGED = 200
MAX_MEASURED = 5


@dataclass(frozen=True)
class PresetRow:
    """A line of the list; `measured` is what somebody's runs gave, the newest first."""

    name: str
    title: str
    origin: str
    author: str
    devices: str
    checksum: str
    is_own: bool
    measured: tuple[str, ...] = ()


@dataclass(frozen=True)
class VersionView:
    """One saved version; `changed` are the lines of a diff against the one before."""

    checksum: str
    saved: str
    is_present: bool
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class PresetView:
    """One preset opened. `words` are (label, text), `ways` how it fits the devices of here."""

    row: PresetRow
    place: str
    words: tuple[tuple[str, str], ...]
    yaml: str
    accelerate_yaml: str
    beyond: tuple[str, ...]
    versions: tuple[VersionView, ...]
    ways: tuple[Adaptation, ...] = ()


@dataclass(frozen=True)
class SourceView:
    """A library: where it is, how many presets it has, and why it cannot be read."""

    prefix: str
    origin: str
    place: str
    num_presets: int
    fault: str | None = None


@dataclass(frozen=True)
class PairView:
    """One setting of two sides."""

    name: str
    first: str
    second: str
    differs: bool


def preset_rows(
    library: Library, found: Sequence[Trial] = (), playbooks: Sequence[Entry] = ()
) -> list[PresetRow]:
    """All presets: those that may be changed first, then in the order of the library."""
    rows = [_row(preset, tuple(_measured(preset, found, playbooks))) for preset in library]
    return sorted(rows, key=lambda row: not row.is_own)


def preset_view(
    preset: Preset, hardware: Hardware, found: Sequence[Trial] = (),
    playbooks: Sequence[Entry] = (),
) -> PresetView:  # fmt: skip
    """One preset with its files and versions."""
    labels = ("why", "when", "limits", "author")
    words = ((say(f"library.{name}"), told(preset, name)) for name in labels)
    return PresetView(
        row=_row(preset, tuple(_measured(preset, found, playbooks))),
        place=preset.path,
        words=tuple((label, text) for label, text in words if text),
        yaml=text_at(preset.path),
        accelerate_yaml=accelerate_text(preset),
        beyond=tuple(beyond_accelerate(preset)),
        versions=_versions(preset),
        ways=_ways(preset, hardware),
    )


def source_views(library: Library) -> list[SourceView]:
    """Every library in order; a folder that is not there is a fault too, but for your own."""
    counts = {
        source.place: sum(preset.source == source.place for preset in library)
        for source in library.sources
    }
    return [
        SourceView(
            source.prefix, source.origin, libraries.provenance(source), counts[source.place],
            source.fault or _missing(source),
        )
        for source in library.sources
    ]  # fmt: skip


def pairs_of(
    first: Preset, second: Preset | RunSpec, *, everything: bool = False
) -> list[PairView]:
    """The settings of a preset beside those of another, or of a run; those that differ."""
    other = second.file if isinstance(second, Preset) else second
    return [
        PairView(one.name, _value(one.first), _value(one.second), one.differs)
        for one in preset_differences.pairs(first.file, other)
        if everything or one.differs
    ]


def request_of_run(run: RunDir) -> RunSpec:
    """What a run asked for; PresetError where that cannot be read."""
    spec = run.read(run.spec, RunSpec)
    if spec is None:
        raise PresetError(say("library.no_spec", run=run.name))
    return spec


def is_own(preset: Preset) -> bool:
    """Whether it may be changed here: neither built in nor of the Hub."""
    return preset.origin != BUILT_IN and not preset.source.startswith("hf://")


def _row(preset: Preset, measured: tuple[str, ...]) -> PresetRow:
    about = preset.about
    return PresetRow(
        name=preset.name,
        title=told(preset, "title"),
        origin=say(f"origin.{preset.origin}"),
        author=about.author,
        devices=" · ".join(say(f"device.{device}") for device in about.devices),
        checksum=preset.checksum[:SHORT],
        is_own=is_own(preset),
        measured=measured,
    )


def _measured(preset: Preset, found: Sequence[Trial], playbooks: Sequence[Entry]) -> Iterator[str]:
    """What the runs that are there gave, then what playbooks tell."""
    for row in measured(preset, found)[:MAX_MEASURED]:
        yield words_of(row)
    for entry in playbooks:
        playbook = entry.playbook
        if playbook is None:
            continue
        kept = entry.receipt.preset if entry.receipt is not None else playbook.preset
        gain = playbook.run.result.speedup.value
        if kept == preset.name and gain is not None:
            yield say(
                "library.measured_playbook", speedup=figures.ratio(gain),
                hardware=playbook.hardware.label, model=playbook.run.model, playbook=entry.name,
            )  # fmt: skip


def _versions(preset: Preset) -> tuple[VersionView, ...]:
    found = preset_store.versions(preset)[:MAX_VERSIONS]
    return tuple(
        VersionView(
            checksum=version.checksum,
            saved=(version.saved or figures.DASH)[:19].replace("T", " "),
            is_present=version.is_present,
            changed=_changed(before.path, version.path) if before else (),
        )
        for version, before in zip(found, [*found[1:], None], strict=True)
    )


def _changed(before: str, after: str) -> tuple[str, ...]:
    """The lines that were taken out and put in."""
    lines = difflib.unified_diff(
        text_at(before).splitlines(), text_at(after).splitlines(), n=0, lineterm=""
    )
    kept = (line for line in lines if not line.startswith(("---", "+++", "@@")))
    return tuple(kept)[:MAX_CHANGED]


def _ways(preset: Preset, hardware: Hardware) -> tuple[Adaptation, ...]:
    try:
        return adaptations(preset, hardware)
    except RingsideError:
        return ()


def _missing(source: libraries.Source) -> str | None:
    is_there = source.folder is None or source.folder.is_dir()
    if is_there or source.origin != libraries.TEAM:
        return None
    return say("library.no_folder", path=source.place)


def text_at(path: str) -> str:
    """A preset's file as text."""
    return yaml_text.read_bytes(Path(path)).decode("utf-8-sig", "replace")


def _value(value: Any) -> str:
    if value is None:
        return figures.DASH
    return value if isinstance(value, str) else json.dumps(value)
