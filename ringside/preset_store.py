"""Keeps presets in a library's folder: new ones, new versions, other names. Nothing is lost.

`NAME.yaml` is the present version. Every version that was ever saved lies beside it as
`.history/NAME/STAMP-CHECKSUM.yaml`, written before the present one is replaced; so two people who
save at once both find theirs there, without any lock. A new name is taken by a hard link, which
fails where the name exists (`open(…, "x")` where the disk has no links).
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ringside import yaml_text
from ringside.errors import PresetError
from ringside.presets import (
    BUILT_IN,
    NAME_PATTERN,
    Library,
    Preset,
    load_preset,
    parse_preset,
    user_folder,
)
from ringside.rundir import iter_files, write_atomic
from ringside.words import say

HISTORY = ".history"
_STAMP = "%Y%m%dT%H%M%S.%fZ"
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EACCES, errno.EXDEV)


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One version that was saved; `saved` is ISO 8601 in UTC, None for an unreadable name."""

    path: str
    checksum: str
    saved: str | None = None
    is_present: bool = False


class ChangedError(PresetError):
    """Somebody has saved a version since this one was seen."""


def save(name: str, text: bytes, *, folder: Path | None = None) -> Preset:
    """Keep a new preset under a name that is free; PresetError with a free one where it is not."""
    check_name(name)
    folder = folder or user_folder()
    parse_preset(text, name=name, origin="file")
    if name in Library().presets or (folder / f"{name}.yaml").exists():
        raise _taken(name)
    target = _create(folder, name, text)
    _remember(target, text)
    return _kept(target)


def replace(preset: Preset, text: bytes) -> Preset:
    """Keep `text` as the preset's new version; the one before stays in its history.

    `preset` is what the person has seen: when the file has changed since, ChangedError says so.
    """
    path = _own_file(preset)
    parse_preset(text, name=path.stem, origin="file")
    if hashlib.sha256(yaml_text.read_bytes(path)).hexdigest() != preset.checksum:
        raise ChangedError(say("keeping.changed", name=preset.name))
    _remember(path, path.read_bytes())
    _remember(path, text)
    write_atomic(path, text)
    return _kept(path, preset)


def seen(preset: Preset, checksum: str) -> Preset:
    """The preset as somebody has seen it, by the SHA-256 of its file then; for `replace`."""
    return msgspec.structs.replace(preset, checksum=checksum)


def clone(preset: Preset, name: str) -> Preset:
    """A copy in your own library under a new name, byte for byte."""
    return save(name, Path(preset.path).read_bytes())


def rename(preset: Preset, name: str) -> Preset:
    """Give a preset of yours or of the team's folder another name; its history goes with it."""
    check_name(name)
    path = _own_file(preset)
    if name in Library().presets or path.with_name(f"{name}.yaml").exists():
        raise _taken(name)
    target = _create(path.parent, name, path.read_bytes())
    old, new = _history(path), _history(target)
    _make(new)
    for version in iter_files(old, "*.yaml"):
        version.replace(new / version.name)
    _remember(target, target.read_bytes())
    path.unlink(missing_ok=True)
    with suppress(OSError):
        old.rmdir()
    return _kept(target, preset)


def delete(preset: Preset) -> Path:
    """Take a preset out of its library; returns the folder in which all its versions stay."""
    path = _own_file(preset)
    _remember(path, yaml_text.read_bytes(path))
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise PresetError(say("keeping.undeletable", path=path, why=error.strerror)) from None
    return _history(path)


def lay_aside(preset: Preset, text: bytes) -> None:
    """Keep `text` among the versions without making it the present one."""
    path = _own_file(preset)
    parse_preset(text, name=path.stem, origin="file")
    _remember(path, text)


def bring_back(preset: Preset, checksum: str) -> Preset:
    """Make an older version, by its SHA-256, the present one; the present one stays a version."""
    for version in versions(preset):
        if version.checksum == checksum:
            return replace(preset, yaml_text.read_bytes(Path(version.path)))
    raise PresetError(say("keeping.no_version", name=preset.name, version=checksum[:12]))


def versions(preset: Preset) -> tuple[Version, ...]:
    """All that were saved, the newest first. One edited by hand counts once it is replaced."""
    path = Path(preset.path)
    found = [
        Version(path=str(one), checksum=_checksum(one), saved=_saved(one))
        for one in iter_files(_history(path), "*.yaml")
    ]
    found.sort(key=lambda one: one.saved or "", reverse=True)
    present = next((i for i, one in enumerate(found) if one.checksum == preset.checksum), None)
    if present is None:
        moment = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
        here = Version(path=str(path), checksum=preset.checksum, saved=moment)
        found, present = [here, *found], 0
    found[present] = msgspec.structs.replace(found[present], is_present=True)
    return tuple(found)


def export(preset: Preset, target: Path, text: bytes | None = None) -> Path:
    """Write the preset's own bytes, or `text`, to a file or into a folder; never overwrites."""
    if target.is_dir():
        target = target / f"{preset.name.rpartition(':')[2]}.yaml"
    if target.exists():
        raise PresetError(say("keeping.exists", path=target))
    if not target.parent.is_dir():
        raise PresetError(say("keeping.no_folder", folder=target.parent))
    try:
        _publish(target, Path(preset.path).read_bytes() if text is None else text)
    except FileExistsError:
        raise PresetError(say("keeping.exists", path=target)) from None
    return target


def free_name(name: str) -> str:
    """The name itself, else with the first number that makes it free: ddp_2."""
    # A file that cannot be read holds its name too.
    taken = {*Library().presets, *(path.stem for path in iter_files(user_folder(), "*.yaml"))}
    numbered = (f"{name[:60]}_{number}" for number in range(2, 10_000))
    return name if name not in taken else next(one for one in numbered if one not in taken)


def check_name(name: str) -> None:
    """PresetError for what is no name; `../x` would leave the library."""
    if not NAME_PATTERN.fullmatch(name):
        raise PresetError(say("yaml.bad_name", name=name))


def _own_file(preset: Preset) -> Path:
    """The file of a preset that may be changed here."""
    if preset.origin == BUILT_IN:
        raise PresetError(say("keeping.built_in", name=preset.name))
    if preset.source.startswith("hf://"):
        raise PresetError(say("keeping.from_hub", name=preset.name))
    return Path(preset.path)


def _create(folder: Path, name: str, text: bytes) -> Path:
    _make(folder)
    target = folder / f"{name}.yaml"
    try:
        _publish(target, text)
    except FileExistsError:
        raise _taken(name) from None
    return target


def _publish(target: Path, text: bytes) -> None:
    """A whole file under a name that must be free; FileExistsError where it is not."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    write_atomic(temporary, text)
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise PresetError(say("keeping.unwritable", path=target, why=error.strerror)) from None
        with target.open("xb") as stream, temporary.open("rb") as source:
            shutil.copyfileobj(source, stream)
    finally:
        temporary.unlink(missing_ok=True)


def _remember(path: Path, text: bytes) -> None:
    """Put a version into the history, unless it is the last one there."""
    folder, checksum = _history(path), hashlib.sha256(text).hexdigest()
    _make(folder)
    last = max((one.name for one in folder.glob("*.yaml")), default="")
    if last.endswith(f"-{checksum[:12]}.yaml"):
        return
    stamp = datetime.now(UTC).strftime(_STAMP)
    write_atomic(folder / f"{stamp}-{checksum[:12]}.yaml", text)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PresetError(say("keeping.no_making", folder=folder, why=error.strerror)) from None


def _history(path: Path) -> Path:
    return path.parent / HISTORY / path.stem


def _saved(path: Path) -> str | None:
    try:
        moment = datetime.strptime(path.stem.rpartition("-")[0], _STAMP)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC).isoformat()


def _checksum(path: Path) -> str:
    return hashlib.sha256(yaml_text.read_bytes(path)).hexdigest()


def _kept(path: Path, before: Preset | None = None) -> Preset:
    origin = "yours" if before is None and path.parent == user_folder() else "team"
    preset = load_preset(path, origin=before.origin if before else origin)
    return msgspec.structs.replace(preset, source=str(path.parent))


def _taken(name: str) -> PresetError:
    return PresetError(say("keeping.taken", name=name, free=free_name(name)))
