"""Pictures in Arrow files: memory-mapped, so that a fork or a pickle carries paths alone."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ringside.data.folder.twins import SAMPLE_BYTES, equal_by
from ringside.data.images import MAX_FILE_BYTES, read_file, too_many_bytes
from ringside.data.pixels import PictureError
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Part:
    """The pictures of one split of a repository: a column of structs (`bytes`, `path`).

    Bytes are null for a picture in a file of its own. `files` are Arrow streams.
    """

    name: str
    files: tuple[str, ...]
    column: str

    @property
    def cells(self) -> Any:
        """The column; opened once per process, for a large one has thousands of chunks."""
        return _cells(self.files, self.column)


@lru_cache(maxsize=16)
def _cells(files: tuple[str, ...], column: str) -> Any:
    import pyarrow as pa

    streams = (pa.ipc.open_stream(pa.memory_map(file)) for file in files)
    columns = [stream.read_all().column(column) for stream in streams]
    return pa.chunked_array([chunk for column in columns for chunk in column.chunks])


@dataclass(frozen=True, eq=False)
class ArrowImages:
    """Pictures of several splits; `places` int64 `[n, 2]` are the part and the row of each.

    `root` is the repository. Rows may name files in `folders` (without links) and nowhere else.
    """

    root: str
    parts: tuple[Part, ...]
    places: NDArray[np.int64]
    targets: NDArray[np.uint8]
    folders: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.places)

    def name(self, i: int) -> str:
        part, row = self.places[i]
        return f"{self.root}/{self.parts[part].name}/{row}"

    def read(self, i: int) -> bytes:
        stored = self.stored(i)
        if not isinstance(stored, str):
            if stored.size > MAX_FILE_BYTES:
                raise too_many_bytes(self.name(i))
            return bytes(stored.to_pybytes())
        if not stored:
            reason = say("picture.none_in_row")
            raise PictureError.about(self.name(i), "empty", reason)
        return read_file(self._contained(stored, i), self.name(i))

    def _contained(self, path: str, i: int) -> str:
        """The file without links; whoever wrote the data set could name any of this machine."""
        found = os.path.realpath(path) if "\0" not in path else ""
        if any(found.startswith(f"{folder}{os.sep}") for folder in self.folders):
            return found
        reason = say("picture.outside_cache", path=path[:200])
        raise PictureError.about(self.name(i), "unreadable", reason)

    def stored(self, i: int) -> Any:
        """The Arrow buffer of picture `i`, without a copy, or the path of its file."""
        part, row = self.places[i]
        cell = self.parts[part].cells[int(row)]
        if not cell.is_valid:
            return ""
        return cell["bytes"].as_buffer() if cell["bytes"].is_valid else cell["path"].as_py() or ""

    def part(self, start: int, stop: int) -> ArrowImages:
        return replace(self, places=self.places[start:stop], targets=self.targets[start:stop])


def equal_pictures(images: ArrowImages) -> list[list[int]]:
    """Groups of indices whose pictures hold the same bytes, by the steps of `equal_files`."""

    def size(i: int) -> int:
        stored = images.stored(i)
        return -1 if isinstance(stored, str) else int(stored.size)

    def tail(i: int) -> bytes:
        stored = images.stored(i)
        if isinstance(stored, str):
            return b""
        return bytes(stored.slice(max(0, stored.size - SAMPLE_BYTES)).to_pybytes())

    def content(i: int) -> bytes | tuple[int]:
        try:
            return hashlib.blake2b(images.read(i), digest_size=16).digest()
        except PictureError:
            return (i,)

    return equal_by(len(images), size, tail, content)
