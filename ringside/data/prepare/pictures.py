"""One picture of a prepared set: made from its source, and read back."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ringside.data.images import ImageSplit, PackedBytes
from ringside.data.pixels import decode_rgb
from ringside.data.prepare.files import Recipe

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image


def make_picture(split: ImageSplit, i: int, recipe: Recipe) -> bytes | NDArray[np.uint8]:
    """Picture `i` as the recipe wants it: an encoded JPEG, or uint8 `[side, side, 3]`.

    Decoded by the rule of `decode_rgb`, which so applies once and for all. Resized with Lanczos
    and antialiasing. Raises `PictureError` when it cannot be read.
    """
    import numpy as np
    from PIL import Image

    pixels = getattr(split, "pixels", None)
    rgb = pixels(i) if pixels else decode_rgb(split.read(i), split.name(i))
    image = Image.fromarray(rgb)
    if recipe.format == "raw":
        return np.asarray(_centre_square(image, recipe.short_side), dtype=np.uint8)
    encoded = io.BytesIO()
    _smaller(image, recipe.short_side).save(encoded, "JPEG", quality=recipe.quality)
    return encoded.getvalue()


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
