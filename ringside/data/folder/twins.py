"""Finds files of equal content without reading every byte of every file."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence

SAMPLE_BYTES = 512
BLOCK_BYTES = 2**20
NUM_THREADS = 16  # they wait for a disk, far away perhaps, and compute little
CHUNK_FILES = 256  # handing files over one by one would cost more than reading them


def equal_files(paths: Sequence[str], sizes_bytes: Sequence[int]) -> list[list[int]]:
    """Groups of indices whose files hold the same bytes; files without a twin are in none.

    Of files that share their size the last 512 bytes are read (compressed pixels, which differ
    wherever pictures do), and only those that agree there too are read as a whole. A file that
    cannot be read has no twin; decoding it will say why.
    """
    return equal_by(
        len(paths),
        lambda i: sizes_bytes[i],
        lambda i: _tail(paths[i], sizes_bytes[i]) or (i,),
        lambda i: _content(paths[i]) or (i,),
    )


def equal_by(count: int, *keys: Callable[[int], Hashable]) -> list[list[int]]:
    """Groups of at least two indices below `count` that agree in all keys.

    A key is asked only where all before it agree, so the dear ones come last.
    """
    groups = [list(range(count))]
    for key in keys:
        groups = _divided(groups, key)
    return groups


def _divided(groups: Iterable[list[int]], key: Callable[[int], Hashable]) -> list[list[int]]:
    """The groups of at least two, within the given ones, that agree in `key`."""
    from concurrent.futures import ThreadPoolExecutor

    members = [(number, i) for number, group in enumerate(groups) for i in group]
    chunks = [members[at : at + CHUNK_FILES] for at in range(0, len(members), CHUNK_FILES)]
    found: dict[Hashable, list[int]] = defaultdict(list)
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        keys = pool.map(lambda chunk: [(number, key(i)) for number, i in chunk], chunks)
        for chunk, values in zip(chunks, keys, strict=True):
            for (_, i), value in zip(chunk, values, strict=True):
                found[value].append(i)
    return [group for group in found.values() if len(group) > 1]


def _tail(path: str, size_bytes: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        sample = os.pread(descriptor, SAMPLE_BYTES, max(0, size_bytes - SAMPLE_BYTES))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return hashlib.blake2b(sample, digest_size=16).digest()


def _content(path: str) -> bytes | None:
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
    except OSError:
        return None
    return digest.digest()
