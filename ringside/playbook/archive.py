"""Reads a playbook from a zip or a folder that anybody may have made, and writes one.

Everything is checked before anything is used: names, kinds and sizes of all members first, then
the list of files with their checksums. What is not on the list is not touched.
"""

from __future__ import annotations

import hashlib
import io
import re
import stat
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ringside.errors import PlaybookError
from ringside.playbook.content import CONTENT, Playbook, decode_playbook, encode_playbook
from ringside.words import say

MAX_FILES = 2_000
MAX_FILE_BYTES = 64 << 20
MAX_TOTAL_BYTES = 256 << 20
MAX_CONTENT_BYTES = 16 << 20
MAX_RATIO = 200
"""Of the whole; text of many equal lines shrinks to a hundredth."""

SMALL_BYTES = 4 << 20
"""Below this a ratio harms nobody."""

MAX_DIRECTORY_BYTES = 1 << 20
"""Of the list of members, which Python reads as a whole, and before anybody can count it."""

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_ALLOWED = re.compile(
    rf"(?:README\.md|index\.html|preset/{_PART}\.yaml|accelerate/accelerate\.yaml"
    rf"|charts/(?:{_PART}/)?{_PART}\.(?:svg|png)"
    rf"|runs/\d{{8}}-\d{{6}}-[a-z]+-[a-z]+(?:-\d+)?/(?:(?:ranks|trace|nccl|scores)/)?{_PART}"
    r"\.(?:json|jsonl|log|json\.gz))",
    re.ASCII,
)
_DRIVE = re.compile(r"[A-Za-z]:")
_EPOCH = (1980, 1, 1, 0, 0, 0)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class _InSmallPieces(io.FileIO):
    """A file of which nobody reads much at once."""

    def read(self, size: int | None = -1, /) -> bytes:
        """As of any file; PlaybookError for more than a list of members may have."""
        if size is not None and size > MAX_DIRECTORY_BYTES:
            raise PlaybookError(say("playbook.many_files", origin=Path(str(self.name)).name,
                                    n=MAX_FILES))  # fmt: skip
        return super().read(size) or b""


class Archive:
    """A zip whose members were looked at; PlaybookError for one that is not safe or not ours."""

    def __init__(self, path: Path) -> None:
        self.path, self.origin = path, path.name
        try:
            with _InSmallPieces(path) as file, zipfile.ZipFile(file):
                pass  # Opened only to see how long the list of members is.
            self._zip = zipfile.ZipFile(path)
            members = self._zip.infolist()
        except OSError as error:
            raise PlaybookError(
                say("playbook.unreadable", origin=path, why=error.strerror or error)
            ) from None
        except (zipfile.BadZipFile, NotImplementedError, ValueError, UnicodeDecodeError):
            raise PlaybookError(say("playbook.no_zip", origin=self.origin)) from None
        self._members = _checked(members, self.origin)
        self._prefix = _prefix(self._members, self.origin)

    def names(self) -> list[str]:
        """All files below the folder that holds `playbook.json`."""
        return [name.removeprefix(self._prefix) for name in self._members
                if name.startswith(self._prefix)]  # fmt: skip

    def read(self, name: str, limit: int) -> bytes:
        """One file, at most `limit` bytes."""
        member = self._members.get(self._prefix + name)
        if member is None:
            raise PlaybookError(say("playbook.missing", origin=self.origin, name=name))
        if member.file_size > limit:
            raise _too_large(self.origin, name, limit)
        try:
            with self._zip.open(member) as stream:
                data = stream.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError,
                NotImplementedError):  # fmt: skip
            raise PlaybookError(say("playbook.damaged", origin=self.origin, why=name)) from None
        if len(data) > limit:
            raise _too_large(self.origin, name, limit)
        return data


class Folder:
    """A folder that holds a playbook; links in it are refused."""

    def __init__(self, path: Path) -> None:
        self.path, self.origin = path, path.name

    def names(self) -> list[str]:
        """All plain files, at most as many as a playbook may have."""
        found = []
        for path in self.path.rglob("*"):
            if path.is_file() and not path.is_symlink():
                found.append(path.relative_to(self.path).as_posix())
            if len(found) > MAX_FILES:
                raise PlaybookError(say("playbook.many_files", origin=self.origin, n=MAX_FILES))
        return found

    def read(self, name: str, limit: int) -> bytes:
        """One file, at most `limit` bytes."""
        path = self.path / name
        parts = [path, *path.parents][: len(Path(name).parts)]
        if any(part.is_symlink() for part in parts):
            raise PlaybookError(say("playbook.link", origin=self.origin, name=name))
        try:
            with path.open("rb") as stream:
                data = stream.read(limit + 1)
        except OSError:
            raise PlaybookError(say("playbook.missing", origin=self.origin, name=name)) from None
        if len(data) > limit:
            raise _too_large(self.origin, name, limit)
        return data


def open_source(path: Path) -> Archive | Folder:
    """A folder or a zip; PlaybookError where there is neither."""
    if path.is_dir():
        return Folder(path)
    if not path.exists():
        raise PlaybookError(say("playbook.no_file", path=path))
    if not path.is_file():
        # Opening a pipe would wait for its other end.
        raise PlaybookError(say("playbook.no_zip", origin=path.name))
    return Archive(path)


def read_content(source: Archive | Folder) -> Playbook:
    """What `playbook.json` says; the other files are not looked at."""
    return decode_playbook(source.read(CONTENT, MAX_CONTENT_BYTES), source.origin)


def read_all(source: Archive | Folder) -> tuple[Playbook, dict[str, bytes]]:
    """The content and every file of it, each with the checksum that it should have."""
    playbook = read_content(source)
    files: dict[str, bytes] = {}
    total = 0
    if len(playbook.files) > MAX_FILES:
        raise PlaybookError(say("playbook.many_files", origin=source.origin, n=MAX_FILES))
    for name in playbook.files:
        files[name] = read_one(source, playbook, name)
        total += len(files[name])
        if total > MAX_TOTAL_BYTES:
            raise _too_large(source.origin, name, MAX_TOTAL_BYTES)
    return playbook, files


def read_one(source: Archive | Folder, playbook: Playbook, name: str) -> bytes:
    """One file that the content names, as it was when the playbook was made."""
    if name not in playbook.files:
        raise PlaybookError(say("playbook.missing", origin=source.origin, name=name))
    if not _ALLOWED.fullmatch(name):
        raise PlaybookError(say("playbook.bad_name", origin=source.origin, name=name[:120]))
    data = source.read(name, MAX_FILE_BYTES)
    if hashlib.sha256(data).hexdigest() != playbook.files[name]:
        raise PlaybookError(say("playbook.changed", origin=source.origin, name=name))
    return data


def checksums(files: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of each file in hexadecimal, in the order of names."""
    return {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}


def zip_bytes(playbook: Playbook, files: Mapping[str, bytes]) -> bytes:
    """The whole playbook as a zip below one folder; equal content makes equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in _members(playbook, files):
            # What is compressed already only costs time once more.
            packed = name.endswith((".png", ".gz"))
            info = zipfile.ZipInfo(f"{playbook.name}/{name}", _EPOCH)
            info.compress_type = zipfile.ZIP_STORED if packed else zipfile.ZIP_DEFLATED
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def _members(playbook: Playbook, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    yield CONTENT, encode_playbook(playbook)
    for name in sorted(files):
        yield name, files[name]


def _checked(members: list[zipfile.ZipInfo], origin: str) -> dict[str, zipfile.ZipInfo]:
    """The files by name, once all of them may be read."""
    if len(members) > MAX_FILES:
        raise PlaybookError(say("playbook.many_files", origin=origin, n=MAX_FILES))
    found: dict[str, zipfile.ZipInfo] = {}
    seen: set[str] = set()
    for member in members:
        _refuse_unsafe(member, origin)
        same = unicodedata.normalize("NFC", member.filename).casefold()
        if same in seen:
            raise PlaybookError(say("playbook.duplicate", origin=origin, name=member.filename))
        seen.add(same)
        if not member.is_dir():
            found[member.filename] = member
    unpacked = sum(member.file_size for member in found.values())
    packed = sum(member.compress_size for member in found.values())
    if unpacked > MAX_TOTAL_BYTES:
        raise _too_large(origin, origin, MAX_TOTAL_BYTES)
    if unpacked > SMALL_BYTES and unpacked > MAX_RATIO * max(packed, 1):
        raise PlaybookError(say("playbook.bomb", origin=origin, ratio=MAX_RATIO))
    return found


def _refuse_unsafe(member: zipfile.ZipInfo, origin: str) -> None:
    """PlaybookError for a name that leads elsewhere, a link, and what cannot be read plainly."""
    # `filename` ends at the first NUL and has slashes only; this is what was written.
    name = member.orig_filename
    shown = ascii(name[:120])[1:-1]
    parts = name.rstrip("/").split("/")
    is_odd = any(part in ("", ".", "..") for part in parts) or _DRIVE.match(name)
    if is_odd or "\\" in name or not name.isprintable() or len(name) > 400:
        raise PlaybookError(say("playbook.bad_name", origin=origin, name=shown))
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise PlaybookError(say("playbook.link", origin=origin, name=shown))
    if member.flag_bits & 0x1:
        raise PlaybookError(say("playbook.encrypted", origin=origin, name=shown))
    if member.compress_type not in _METHODS:
        raise PlaybookError(say("playbook.damaged", origin=origin, why=shown))
    if member.file_size > MAX_FILE_BYTES:
        raise _too_large(origin, shown, MAX_FILE_BYTES)


def _prefix(members: Mapping[str, zipfile.ZipInfo], origin: str) -> str:
    """The one folder that may stand around a playbook, with its slash."""
    found = [name for name in members if name.rpartition("/")[2] == CONTENT]
    places = [name.removesuffix(CONTENT) for name in found if name.count("/") <= 1]
    if len(places) != 1:
        raise PlaybookError(say("playbook.not_ours", origin=origin))
    return places[0]


def _too_large(origin: str, name: str, limit: int) -> PlaybookError:
    return PlaybookError(say("playbook.too_large", origin=origin, name=name, limit=limit // 2**20))
