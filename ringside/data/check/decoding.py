"""Decodes pictures in processes of their own; what comes back is small."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ringside.data.images import ImageSplit
from ringside.data.pixels import Fault, PictureError, load_image, to_rgb
from ringside.data.pool import stop_point

if TYPE_CHECKING:
    from PIL.Image import Image

DIGEST_BYTES = 16
CHUNK_IMAGES = 64
EXIF_ORIENTATION, TIFF_BITS_PER_SAMPLE = 0x0112, 258


@dataclass(frozen=True)
class Chunk:
    """A few pictures; `start` is the position of the first of them in the whole check."""

    start: int
    pictures: ImageSplit


@dataclass(frozen=True)
class Decoded:
    """What decoding a chunk showed; positions count in the whole check.

    `digests` holds 16 bytes for each picture, zeros for those that could not be read.
    """

    start: int
    digests: bytes
    bad: list[tuple[int, Fault, str]] = field(default_factory=list)
    kinds: dict[str, list[int]] = field(default_factory=dict)


def chunks_of(splits: Iterable[ImageSplit]) -> Iterator[Chunk]:
    """The pictures of all splits, one after the other, in chunks."""
    offset = 0
    for split in splits:
        for start in range(0, len(split), CHUNK_IMAGES):
            yield Chunk(offset + start, split.part(start, start + CHUNK_IMAGES))
        offset += len(split)


def decode_chunk(chunk: Chunk) -> Decoded:
    """Read and decode every picture by the rule of training."""
    digests = bytearray(DIGEST_BYTES * len(chunk.pictures))
    found = Decoded(chunk.start, b"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's remarks on odd files; faults are raised
        for i in range(len(chunk.pictures)):
            stop_point()
            try:
                data = chunk.pictures.read(i)
                digest = hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()
                digests[DIGEST_BYTES * i : DIGEST_BYTES * (i + 1)] = digest
                kinds = kinds_of(data, chunk.pictures.name(i))
            except PictureError as error:
                found.bad.append((chunk.start + i, error.code, error.reason))
                continue
            for kind in kinds:
                found.kinds.setdefault(kind, []).append(chunk.start + i)
    return Decoded(chunk.start, bytes(digests), found.bad, found.kinds)


def kinds_of(data: bytes, name: str) -> list[str]:
    """What is unusual about a picture that decodes. Raises `PictureError` for others."""
    image = load_image(data, name)
    kinds = [kind for kind, applies in _kinds(image, data).items() if applies]
    if kinds or "exif" in image.info or image.mode not in ("RGB", "L"):
        to_rgb(image, name)  # other pictures cannot fail here
    return kinds


def _kinds(image: Image, data: bytes) -> dict[str, bool]:
    mode = image.mode
    return {
        "16-bit": mode.startswith("I") or _bits_per_sample(image, data) == 16,
        "float": mode == "F",
        "CMYK": mode == "CMYK",
        "palette": mode in ("P", "PA"),
        "alpha": image.has_transparency_data,
        "EXIF-rotated": _orientation(image) in range(2, 9),
    }


def _bits_per_sample(image: Image, data: bytes) -> int:
    """Of files whose colours Pillow cuts to 8 bits while reading; others count as 8."""
    if image.format == "PNG":
        return data[24]  # the header has a fixed place
    bits = getattr(image, "tag_v2", {}).get(TIFF_BITS_PER_SAMPLE, (8,))
    return max(bits) if isinstance(bits, tuple) else int(bits)


def _orientation(image: Image) -> object:
    try:
        return image.getexif().get(EXIF_ORIENTATION)
    except Exception:  # a damaged EXIF block; `to_rgb` decides whether the picture can be used
        return None
