"""Decodes pictures in processes of their own; what comes back is small."""

from __future__ import annotations

import hashlib
import signal
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from ringside.data.images import ImageSplit
from ringside.data.pixels import Fault, PictureError, load_image, to_rgb
from ringside.errors import DataError

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


def decode_chunks(chunks: Iterable[Chunk], workers: int) -> Iterator[Decoded]:
    """Decode the chunks in so many processes, or here when it is one; in any order.

    No more chunks are under way than keep the processes busy, so memory does not grow with them.
    Raises `DataError` when a process is killed.
    """
    if workers <= 1:
        yield from map(decode_chunk, chunks)
        return
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # the caller may hold threads
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_ctrl_c_to_parent)
    waiting = iter(chunks)
    try:
        pending = {pool.submit(decode_chunk, chunk) for chunk in islice(waiting, 3 * workers)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            pending |= {pool.submit(decode_chunk, chunk) for chunk in islice(waiting, len(done))}
            yield from (future.result() for future in done)
    except BrokenProcessPool as error:
        raise DataError(
            "A process that decoded images was killed, most likely for lack of memory: check "
            "again with fewer workers. (A script calls check_data below `if __name__ == ...`.)"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _leave_ctrl_c_to_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def decode_chunk(chunk: Chunk) -> Decoded:
    """Read and decode every picture by the rule of training."""
    digests = bytearray(DIGEST_BYTES * len(chunk.pictures))
    found = Decoded(chunk.start, b"")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's remarks on odd files; faults are raised
        for i in range(len(chunk.pictures)):
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
