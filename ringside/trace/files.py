"""From paths to the bytes of trace files, and what can be wrong with them."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from ringside.errors import TraceError
from ringside.words import say

SUFFIXES = (".json", ".json.gz")
_RANK = re.compile(r"(?:rank|worker)[-_.]?(\d+)", re.IGNORECASE)


def trace_files(paths: Iterable[Path]) -> list[Path]:
    """The files that paths mean: themselves, or the traces in a folder or in a run's `trace`.

    Raises `TraceError` for a path that does not exist or a folder without traces.
    """
    found: dict[Path, None] = {}
    for path in paths:
        found.update(dict.fromkeys(_below(path) if path.is_dir() else [_existing(path)]))
    return list(found)


def _existing(path: Path) -> Path:
    if not path.exists():
        raise TraceError(say("trace_file.missing", path=shown(path)))
    return path


def _below(folder: Path) -> Iterator[Path]:
    inner = folder / "trace"
    files = sorted((inner if inner.is_dir() else folder).iterdir())
    traces = [path for path in files if path.name.endswith(SUFFIXES)]
    if not traces:
        raise TraceError(say("trace_file.none", folder=shown(folder)))
    yield from traces


def read_bytes(path: Path) -> bytes:
    """A file's text, unpacked where it is gzip. Raises `TraceError` when it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TraceError(
            say("trace_file.unreadable", path=shown(path), why=error.strerror or error)
        ) from error
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise TraceError(say("trace_file.damaged", path=shown(path))) from error
    if not data.strip():
        raise TraceError(say("trace_file.empty", path=shown(path)))
    return data


def shown(text: object) -> str:
    """A name from outside for a sentence: control characters would be obeyed by a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def rank_in_name(path: Path) -> int | None:
    """The rank that a file's name states, as in `ddp.rank1.json.gz` or `worker0.….json`."""
    found = _RANK.search(path.name)
    return int(found[1]) if found else None
