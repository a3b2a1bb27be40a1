"""One picture of a prepared set: made from its source, and read back."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from ringside.data.images import ImageSplit, PackedBytes
from ringside.data.pixels import decode_rgb
from ringside.data.prepare.files import Recipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image


Source: TypeAlias = "bytes | NDArray[np.uint8]"
"""A picture as a split hands it over: encoded, or pixels `[height, width, 3]`."""


def source_of(split: ImageSplit, i: int) -> Source:
    """Picture `i` before anything is done with it. Raises `PictureError`."""
    pixels = getattr(split, "pixels", None)
    source: Source = pixels(i) if pixels else split.read(i)
    return source


def make_jpeg(source: Source, name: str, recipe: Recipe) -> bytes:
    """The picture `name` as an encoded JPEG, its short side as the recipe wants, never larger.

    Decoded by the rule of `decode_rgb`, which so applies once and for all. Resized with Lanczos
    and antialiasing. Raises `PictureError` when it cannot be read.
    """
    encoded = io.BytesIO()
    image = _smaller(_decoded(source, name), recipe.short_side)
    image.save(encoded, "JPEG", quality=recipe.quality)
    return encoded.getvalue()


def make_square(source: Source, name: str, side: int) -> tuple[NDArray[np.uint8], bool]:
    """The centre of the picture `name`, uint8 `[side, side, 3]`, and whether it had to be enlarged.

    Decoded, resized and refused as in `make_jpeg`.
    """
    import numpy as np

    image = _decoded(source, name)
    return np.asarray(_centre_square(image, side), dtype=np.uint8), min(image.size) < side


def short_side_of(source: Source, name: str) -> int:
    """Of the picture `name`, in pixels. Raises `PictureError` when it cannot be read."""
    return min(_decoded(source, name).size)


def _decoded(source: Source, name: str) -> Image:
    from PIL import Image

    return Image.fromarray(decode_rgb(source, name) if isinstance(source, bytes) else source)


def _smaller(image: Image, short_side: int) -> Image:
    from PIL import Image

    short = min(image.size)
    if short <= short_side:
        return image
    width, height = (max(short_side, round(side * short_side / short)) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def _centre_square(image: Image, side: int) -> Image:
    from PIL import Image

    width, height = image.size
    short = min(width, height)
    left, top = (width - short) // 2, (height - short) // 2
    box = (left, top, left + short, top + short)
    return image.resize((side, side), Image.Resampling.LANCZOS, box=box)


@dataclass(frozen=True, eq=False)
class RawImages:
    """Squares in the memory-mapped file `path`, from row `first` on; nothing has to be decoded."""

    path: str
    first: int
    files: PackedBytes
    targets: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.files)

    def name(self, i: int) -> str:
        return self.files[i].decode()

    def pixels(self, i: int) -> NDArray[np.uint8]:
        """Picture `i`, uint8 `[side, side, 3]`, a copy of its own."""
        row = self.first + range(len(self.files))[i]
        copy: NDArray[np.uint8] = _mapped(self.path)[row].copy()
        return copy

    def read(self, i: int) -> bytes:
        """Picture `i` as BMP, for those who want a file."""
        from PIL import Image

        encoded = io.BytesIO()
        Image.fromarray(self.pixels(i)).save(encoded, "BMP")
        return encoded.getvalue()

    def part(self, start: int, stop: int) -> RawImages:
        files, targets = self.files.part(start, stop), self.targets[start:stop]
        return RawImages(self.path, self.first + start, files, targets)


@lru_cache(maxsize=8)
def _mapped(path: str) -> NDArray[np.uint8]:
    """The file as an array that does not count as a memmap: copies of its rows are plain."""
    import numpy as np

    mapped: NDArray[np.uint8] = np.asarray(np.load(path, mmap_mode="r"))
    return mapped
