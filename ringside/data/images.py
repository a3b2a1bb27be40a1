"""What a data source hands over: encoded pictures with names and targets, in two splits.

Splits travel to loader workers, by fork or by pickle. Their pictures, paths and names therefore
live in a few large buffers: a list of 480,000 strings would be copied page by page in every forked
worker, as soon as the reference counts are touched.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from ringside.data.pixels import PictureError
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.spec import DataSpec

Task = Literal["multi_label", "single_label"]

MAX_FILE_BYTES = 2**30  # more than any picture of `MAX_PIXELS`; a film is not read into memory


class ImageSplit(Protocol):
    """The pictures of one split. Picklable; `i` runs from 0 to `len(split) - 1`.

    A split whose pictures need no codec has `pixels(i)` too: uint8 `[height, width, 3]`, its own.
    """

    @property
    def targets(self) -> NDArray[np.uint8]:
        """Multi-hot (one-hot for a single-label task), shape `[len(split), num_classes]`."""
        ...

    def __len__(self) -> int: ...

    def name(self, i: int) -> str:
        """What a person would call picture `i` in a message: its path or its title."""
        ...

    def read(self, i: int) -> bytes:
        """Picture `i` as it is encoded. Raises `DataError` when it cannot be read."""
        ...

    def part(self, start: int, stop: int) -> ImageSplit:
        """The pictures from `start` to `stop` (not included) as a small split of their own."""
        ...


@dataclass(frozen=True, eq=False)
class ImageData:
    """An opened data set.

    `notes` are sentences for a person: what was ignored, which labels are hard or one-sided.
    `fingerprint` is equal for equal data and for nothing else (see `fingerprint_of`).
    """

    spec: DataSpec
    title: str
    task: Task
    classes: tuple[str, ...]
    train: ImageSplit
    val: ImageSplit
    synthetic: bool
    notes: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True, eq=False)
class PackedBytes:
    """Many byte strings in one buffer; item `i` ends at `ends[i]`."""

    buffer: bytes
    ends: NDArray[np.int64]

    @classmethod
    def pack(cls, items: Iterable[bytes]) -> PackedBytes:
        """One buffer from `items`, in their order."""
        import numpy as np

        kept = list(items)
        return cls(b"".join(kept), np.cumsum([len(item) for item in kept], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, i: int) -> bytes:
        i = range(len(self.ends))[i]  # negative and too large indices, as in a list
        start = int(self.ends[i - 1]) if i else 0
        return self.buffer[start : int(self.ends[i])]

    def part(self, start: int, stop: int) -> PackedBytes:
        """The items from `start` to `stop`, copied."""
        return PackedBytes.pack(self[i] for i in range(start, min(stop, len(self))))


@dataclass(frozen=True, eq=False)
class StoredImages:
    """Pictures held in memory."""

    names: PackedBytes
    images: PackedBytes
    targets: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.images)

    def name(self, i: int) -> str:
        return self.names[i].decode()

    def read(self, i: int) -> bytes:
        return self.images[i]

    def part(self, start: int, stop: int) -> StoredImages:
        return StoredImages(
            self.names.part(start, stop), self.images.part(start, stop), self.targets[start:stop]
        )


@dataclass(frozen=True, eq=False)
class FileImages:
    """Pictures in files; `paths` are relative to `root`, with forward slashes."""

    root: str
    paths: PackedBytes
    targets: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.paths)

    def name(self, i: int) -> str:
        return f"{self.root}/{self.paths[i].decode(errors='surrogateescape')}"

    def read(self, i: int) -> bytes:
        return read_file(self.name(i), self.name(i))

    def part(self, start: int, stop: int) -> FileImages:
        return FileImages(self.root, self.paths.part(start, stop), self.targets[start:stop])


def read_file(path: str, name: str) -> bytes:
    """The content of a regular file; `PictureError` about `name` when it cannot be read.

    Pipes and devices are refused: reading them could last for ever.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                reason = say("picture.no_file")
                raise PictureError.about(name, "unreadable", reason)
            if found.st_size > MAX_FILE_BYTES:
                raise too_many_bytes(name)
            return file.read(found.st_size)
    except OSError as error:
        reason = say("picture.unreadable", why=error.strerror)
        raise PictureError.about(name, "unreadable", reason) from error


def too_many_bytes(name: str) -> PictureError:
    """The refusal of a file that is larger than any picture."""
    reason = say("picture.too_many_bytes", limit=MAX_FILE_BYTES // 2**20)
    return PictureError.about(name, "too-large", reason)


def _open_at_once(path: str, flags: int) -> int:
    """A pipe would otherwise wait for somebody who writes."""
    return os.open(path, flags | os.O_NONBLOCK)


def fingerprint_of(
    classes: Iterable[str], splits: Mapping[str, tuple[NDArray[np.uint8], Iterable[bytes]]]
) -> str:
    """A hash over the class names and, per split, every picture's identity and targets.

    The identity is whatever tells two pictures of a source apart: name and content where reading
    the content is cheap. 32 hexadecimal digits (BLAKE2b).
    """
    digest = hashlib.blake2b(digest_size=16)

    def add(part: bytes) -> None:
        digest.update(len(part).to_bytes(8, "little"))  # so that ab + c differs from a + bc
        digest.update(part)

    for name in classes:
        add(name.encode())
    for split, (targets, identities) in sorted(splits.items()):
        add(split.encode())
        add(targets.tobytes())
        for identity in identities:
            add(identity)
    return digest.hexdigest()
