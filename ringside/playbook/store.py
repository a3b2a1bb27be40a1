"""Where playbooks are kept: your own folder, then `playbooks` in each of the team's libraries.

`NAME.zip` is one as it was made or handed over, `NAME/` one that was imported. Nothing is ever
overwritten: a second one of the same name becomes `NAME-2`. Recorded runs of an imported playbook
stay in its folder, apart from the runs of this machine, so nothing measures or compares with them
by accident, and each carries a mark that says where it came from.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from ringside import libraries, preset_store
from ringside.errors import PlaybookError, PresetError, RunDirError, nearest
from ringside.imported import Imported
from ringside.playbook import archive
from ringside.playbook.content import CONTENT, NAME_PATTERN, Playbook, encode_playbook
from ringside.playbook.gathering import slug
from ringside.presets import Library, parse_preset
from ringside.rundir import RunDir, write_atomic
from ringside.spec import FORMAT
from ringside.words import say

FOLDER = "playbooks"
RECEIPT = "imported.json"
Place = Literal["yours", "team"]


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """`imported.json` beside the content of a playbook that was imported.

    `name` is that of its folder, `preset` the one of the library that it runs with; `is_new`
    tells whether the import saved it, or found an equal one. `runs` are ids of recorded runs.
    """

    format: int = FORMAT
    name: str
    preset: str
    is_new: bool
    imported: float
    runs: tuple[str, ...] = ()


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A kept playbook; `fault` says why its content cannot be read, `playbook` is None then."""

    name: str
    place: Place
    path: Path
    playbook: Playbook | None = None
    receipt: Receipt | None = None
    fault: str | None = None


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for: all words of `search` anywhere; parts of the others' names."""

    search: str = ""
    model: str | None = None
    hardware: str | None = None
    cause: str | None = None


def own_folder() -> Path:
    """Beside your own presets: one folder per user."""
    return libraries.user_folder().parent / FOLDER


def folders() -> list[tuple[Place, Path]]:
    """Your own, then the team's in the order of `RINGSIDE_LIBRARY`."""
    found: list[tuple[Place, Path]] = [("yours", own_folder())]
    for source in libraries.sources():
        if source.origin == libraries.TEAM and source.folder is not None:
            found.append(("team", source.folder / FOLDER))
    return found


def list_playbooks(query: Query | None = None) -> list[Entry]:
    """All that fit, newest first; one that cannot be read comes last, if nothing is asked."""
    found = [entry for entry in _entries() if _fits(entry, query or Query())]
    return sorted(found, key=lambda entry: -entry.playbook.made if entry.playbook else 0.0)


def find_playbook(text: str) -> Entry:
    """A kept playbook by its name, or one in a file or folder; PlaybookError for neither."""
    entries = list(_entries())
    exact = [entry for entry in entries if entry.name == text]
    fits = exact or [entry for entry in entries if text and entry.name.startswith(text)]
    if len({entry.name for entry in fits}) == 1:
        return _whole(fits[0])
    if not fits and Path(text).expanduser().exists():
        return _whole(_entry("yours", Path(text).expanduser()))
    if fits:
        names = ", ".join(entry.name for entry in fits[:5])
        raise PlaybookError(say("playbook.several", text=text, names=names))
    if not entries:
        raise PlaybookError(say("playbook.none", text=text))
    hint = nearest(text, [entry.name for entry in entries])
    raise PlaybookError(say("playbook.unknown", text=text, hint=hint))


def keep(playbook: Playbook, files: dict[str, bytes], target: Path | None = None) -> Path:
    """Write it as a zip to `target`, by default into your own folder under a free name.

    Whole or not at all; a file that exists is a PlaybookError.
    """
    if target is None:
        folder = own_folder()
        _make(folder)
        playbook = msgspec.structs.replace(playbook, name=_free(playbook.name, folder))
        target = folder / f"{playbook.name}.zip"
    playbook = msgspec.structs.replace(playbook, files=archive.checksums(files))
    if not target.parent.is_dir():
        raise PlaybookError(say("playbook.no_folder", path=target.parent))
    _publish(target, archive.zip_bytes(playbook, files))
    return target


def import_playbook(path: Path) -> Receipt:
    """Unpack it into your own folder and put its preset into your library.

    Everything is checked first: where something is wrong, a PlaybookError, and nothing is written.
    """
    playbook, files = archive.read_all(archive.open_source(path))
    text = _preset_of(playbook, files)
    folder = own_folder()
    _make(folder)
    temporary = folder / f".{secrets.token_hex(6)}.tmp"
    saved: Path | None = None
    try:
        _unpack(temporary, playbook, files)
        preset, is_new, saved = _keep_preset(playbook, text)
        return _place(temporary, folder, playbook, preset, is_new)
    except BaseException:
        if saved is not None:
            saved.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def packed(entry: Entry) -> bytes:
    """It as a zip, in whatever form it is kept; every file is checked again."""
    if entry.path.is_file():
        archive.read_all(archive.open_source(entry.path))
        return entry.path.read_bytes()
    playbook, files = archive.read_all(archive.open_source(entry.path))
    return archive.zip_bytes(msgspec.structs.replace(playbook, name=entry.name), files)


def export_kept(entry: Entry, target: Path) -> Path:
    """Write a kept playbook to a file that must not exist."""
    _publish(target, packed(entry))
    return target


def read_file(entry: Entry, name: str) -> bytes:
    """One file that the playbook names, such as `index.html`; PlaybookError for any other."""
    source = archive.open_source(entry.path)
    return archive.read_one(source, archive.read_content(source), name)


def recorded_runs(entry: Entry) -> list[RunDir]:
    """The recorded runs of an imported playbook; PlaybookError for one that is still packed."""
    playbook = require(entry)
    if entry.path.is_file():
        raise PlaybookError(say("playbook.packed", name=entry.name, path=entry.path))
    return [RunDir(entry.path / "runs" / run.id) for run in playbook.runs]


def remove_playbook(name: str) -> None:
    """Delete one of your own folder for good; presets that came with it stay."""
    entry = next((e for e in _entries() if e.name == name and e.place == "yours"), None)
    if entry is None:
        raise PlaybookError(say("playbook.not_yours", name=name))
    if entry.path.is_file():
        entry.path.unlink(missing_ok=True)
        return
    # Out of sight in one step; what is left of a removal that was cut short has a dot in front.
    aside = entry.path.with_name(f".{secrets.token_hex(6)}.tmp")
    try:
        entry.path.rename(aside)
    except OSError as error:
        raise PlaybookError(
            say("playbook.unwritable", path=entry.path, why=error.strerror)
        ) from None
    shutil.rmtree(aside, ignore_errors=True)


def require(entry: Entry) -> Playbook:
    """Its content, or the PlaybookError that says why there is none."""
    if entry.playbook is None:
        raise PlaybookError(entry.fault or say("playbook.not_ours", origin=entry.name))
    return entry.playbook


def _entries() -> Iterator[Entry]:
    for place, folder in folders():
        with suppress(OSError):
            for path in sorted(folder.iterdir()):
                is_playbook = path.suffix == ".zip" or (path / CONTENT).is_file()
                if is_playbook and not path.name.startswith("."):
                    yield _entry(place, path)


def _entry(place: Place, path: Path) -> Entry:
    name = path.name.removesuffix(".zip")
    try:
        playbook = archive.read_content(archive.open_source(path))
    except PlaybookError as fault:
        return Entry(name=name, place=place, path=path, fault=str(fault))
    return Entry(name=name, place=place, path=path, playbook=playbook, receipt=_receipt(path))


def _whole(entry: Entry) -> Entry:
    require(entry)
    return entry


def _receipt(path: Path) -> Receipt | None:
    try:
        return msgspec.json.decode((path / RECEIPT).read_bytes(), type=Receipt)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _fits(entry: Entry, query: Query) -> bool:
    playbook = entry.playbook
    words = query.search.casefold().split()
    if playbook is None:
        return not (words or query.model or query.hardware or query.cause)
    models = " ".join(run.model for run in playbook.runs)
    hardware = f"{playbook.hardware.label} {' '.join(playbook.hardware.transports)}"
    causes = " ".join(playbook.causes).replace("_", " ")
    asked = ((query.model, models), (query.hardware, hardware), (query.cause, causes))
    if not all(
        (part or "").casefold().replace("_", " ") in whole.casefold().replace("_", " ")
        for part, whole in asked
    ):
        return False
    about = playbook.preset_file.about
    text = " ".join((
        entry.name, playbook.title, playbook.preset, models, hardware, causes, playbook.data.name,
        about.title, about.why, *(run.diagnosis.verdict.sentence for run in playbook.runs),
    )).casefold()  # fmt: skip
    return all(word in text for word in words)


def _preset_of(playbook: Playbook, files: dict[str, bytes]) -> bytes:
    """The preset's YAML, after making sure that it is one and says what the content says."""
    name = f"preset/{playbook.preset}.yaml"
    if name not in files:
        raise PlaybookError(say("playbook.missing", origin=playbook.name, name=name))
    try:
        found = parse_preset(files[name], name=playbook.preset, origin="file")
        preset_store.check_name(playbook.preset)
    except PresetError as error:
        raise PlaybookError(say("playbook.bad_preset", why=error)) from None
    if found.file != playbook.preset_file:
        raise PlaybookError(say("playbook.changed", origin=playbook.name, name=name))
    return files[name]


def _keep_preset(playbook: Playbook, text: bytes) -> tuple[str, bool, Path | None]:
    """The preset's name here, whether it is new, and its file if it is."""
    while True:
        same = equal_preset(playbook)
        if same is not None:
            return same, False, None
        name = preset_store.free_name(playbook.preset)
        try:
            kept = preset_store.save(name, text)
        except (PresetError, RunDirError) as error:
            # Another import may have taken the name meanwhile, with this very preset.
            if preset_store.free_name(playbook.preset) == name:
                raise PlaybookError(str(error)) from None
            continue
        return kept.name, True, Path(kept.path)


def equal_preset(playbook: Playbook) -> str | None:
    """A preset of the library that does the same, whatever it says about itself."""
    wanted = playbook.preset_file

    def does(file: object) -> tuple[object, ...]:
        return tuple(getattr(file, part) for part in ("accelerate", "training", "environment"))

    fits = [preset.name for preset in Library() if does(preset.file) == does(wanted)]
    return playbook.preset if playbook.preset in fits else next(iter(fits), None)


def _unpack(target: Path, playbook: Playbook, files: dict[str, bytes]) -> None:
    try:
        target.mkdir()
        for name, data in files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for run in playbook.runs:
            if (folder := target / "runs" / run.id).is_dir():
                mark = msgspec.json.encode(Imported(playbook=playbook.title))
                RunDir(folder).imported.write_bytes(mark + b"\n")
    except OSError as error:
        raise PlaybookError(
            say("playbook.unwritable", path=target.parent, why=error.strerror)
        ) from None


def _place(temporary: Path, folder: Path, playbook: Playbook, preset: str, is_new: bool) -> Receipt:
    """Give the unpacked folder a free name in one step; somebody else may take one meanwhile."""
    while True:
        name = _free(playbook.name, folder)
        receipt = Receipt(
            name=name, preset=preset, is_new=is_new, imported=round(time.time(), 3),
            runs=tuple(run.id for run in playbook.runs),
        )  # fmt: skip
        content = msgspec.structs.replace(playbook, name=name)
        write_atomic(temporary / CONTENT, encode_playbook(content))
        write_atomic(temporary / RECEIPT, msgspec.json.encode(receipt) + b"\n")
        try:
            temporary.rename(folder / name)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                continue
            raise PlaybookError(
                say("playbook.unwritable", path=folder, why=error.strerror)
            ) from None
        return receipt


def _free(name: str, folder: Path) -> str:
    """The name, else with the first number that makes it free: `name-2`."""
    name = name if NAME_PATTERN.fullmatch(name) else slug(name)
    taken = {path.name.removesuffix(".zip") for path in folder.iterdir()}
    numbered = (f"{name[:74]}-{number}" for number in range(2, 100_000))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlaybookError(say("playbook.unwritable", path=folder, why=error.strerror)) from None


def _publish(target: Path, data: bytes) -> None:
    """A whole file under a name that must be free."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        write_atomic(temporary, data)
        os.link(temporary, target)
    except FileExistsError:
        raise PlaybookError(say("playbook.exists", path=target)) from None
    except RunDirError as error:
        raise PlaybookError(str(error)) from None
    except OSError:  # a disk without hard links
        if target.exists():
            raise PlaybookError(say("playbook.exists", path=target)) from None
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
