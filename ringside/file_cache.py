"""What was worked out of files, kept from one command to the next while the files stay as they are.

One file in the user's cache folder for each purpose. It can be deleted at any time; a file that
cannot be read or written costs time and nothing else. An entry counts while size, time of change
and inode of its file are the same, and while the code that worked it out is.
"""

from __future__ import annotations

import functools
import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from ringside.errors import RunDirError
from ringside.rundir import write_atomic

T = TypeVar("T")
Signature = tuple[int, int, int]

MAX_ENTRIES = 20_000


def signature_of(path: Path) -> Signature | None:
    """What changes with a file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class FileCache(Generic[T]):
    """Values of `kind` by the path of the file that they come from.

    `get` and `put` work in memory; `save` writes what is new.
    """

    def __init__(self, name: str, kind: type[T]) -> None:
        self._name, self._kind = name, kind
        self._entries: dict[str, tuple[Signature, T]] | None = None
        self._is_new = False

    def get(self, path: Path) -> T | None:
        """The value of the file as it is now; None where it has to be worked out."""
        known = self._loaded().get(str(path))
        return known[1] if known is not None and known[0] == signature_of(path) else None

    def put(self, path: Path, value: T, signature: Signature | None) -> None:
        """Keep a value; `signature` is that of the file before it was read."""
        if signature is not None:
            self._loaded()[str(path)] = (signature, value)
            self._is_new = True

    def save(self) -> None:
        """Write what is new; where that cannot be done nothing is kept."""
        if not self._is_new or self._entries is None:
            return
        entries = dict(list(self._entries.items())[-MAX_ENTRIES:])
        with suppress(OSError, RunDirError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path, msgspec.msgpack.encode((code_version(), entries)))
            self._is_new = False

    @property
    def _path(self) -> Path:
        import platformdirs

        return Path(platformdirs.user_cache_dir("ringside")) / f"{self._name}.msgpack"

    def _loaded(self) -> dict[str, tuple[Signature, T]]:
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def _read(self) -> dict[str, tuple[Signature, T]]:
        shape: Any = tuple[str, dict[str, tuple[Signature, self._kind]]]  # type: ignore[name-defined]
        try:
            version, entries = msgspec.msgpack.decode(self._path.read_bytes(), type=shape)
        except (OSError, msgspec.DecodeError):
            return {}
        return entries if version == code_version() else {}


@functools.cache
def code_version() -> str:
    """Changes with the code of this package."""
    return version_of(Path(__file__).parent)


def version_of(folder: Path) -> str:
    """Changes with any Python file below a folder."""
    found = sorted(
        (str(path.relative_to(folder)), *(signature_of(path) or ()))
        for path in folder.glob("**/*.py")
    )
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]
