"""The logs of a run, by rank, read by byte offset and never more than a bound at once.

A line counts for the place where it begins. What many viewers ask for is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ringside.rundir import RunDir
from ringside.words import say, spoken

MAX_BYTES = 200_000
MAX_LINE_BYTES = 50_000
BLOCK_BYTES = 1 << 20
MAX_PIECES = 32
MAX_HITS = 200
MAX_WORDS = 200
MAX_HIT_TEXT = 300
CONSOLE = "console"

# Torch elastic writes `[default1]:` before each line of rank 1; ours say `[rank 1]` themselves.
_ELASTIC = re.compile(r"^\[default(\d+)\]:(\[rank \d+\])?", re.MULTILINE)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True)
class LogChunk:
    """Text of a log from `start` to before `offset`; `reset`: it replaces what is shown."""

    text: str
    offset: int
    reset: bool
    start: int = 0


@dataclass(frozen=True)
class Hit:
    """A line that holds what was looked for: its first byte, its number from 1, its text."""

    offset: int
    line: int
    text: str


@dataclass(frozen=True)
class Hits:
    """The first lines that were found; `more`: there are others behind them."""

    found: tuple[Hit, ...]
    more: bool


def log_choices(run: RunDir) -> list[tuple[str, str]]:
    """(label, key) of every log there is: the console first, then each rank's two streams."""
    choices = [(say("log.console"), CONSOLE)]
    for rank in sorted(_rank_folders(run)):
        choices.append((say("log.rank", rank=rank), f"{rank}.stdout"))
        choices.append((say("log.rank_errors", rank=rank), f"{rank}.stderr"))
    return choices


def read_log(run: RunDir, key: str, offset: int | None) -> LogChunk:
    """What was written since `offset`; None, or a file that shrank, starts over near the end."""
    path = log_path(run, key)
    try:
        found = path.stat() if path else None
    except OSError:
        found = None
    size = found.st_size if found else 0
    reset = offset is None or offset > size or size - offset > MAX_BYTES
    start = max(0, size - MAX_BYTES) if reset or offset is None else offset
    if path is None or found is None or size == start:
        return LogChunk("", start, reset, start)
    state = (found.st_ino, found.st_mtime_ns, size, spoken())
    return _piece(path, state, start, reset)


@lru_cache(maxsize=MAX_PIECES)
def _piece(path: Path, state: tuple[int, int, int, str], start: int, reset: bool) -> LogChunk:
    """From `start` to the end; viewers who ask for the same state of a file share one read."""
    data = _read(path, start, state[2] - start)
    # A line that is not finished, and half a character with it, waits for the next look.
    end = data.rfind(b"\n") + 1
    if not end and len(data) > MAX_LINE_BYTES:
        end = len(data)
    begin = data.find(b"\n", 0, end) + 1 if start and reset else 0
    return LogChunk(_readable(data[begin:end]), start + end, reset, start + begin)


def read_before(run: RunDir, key: str, offset: int) -> LogChunk:
    """The whole lines that end at `offset`, at most MAX_BYTES of them."""
    path = log_path(run, key)
    start = max(0, offset - MAX_BYTES)
    data = _read(path, start, offset - start) if path and offset > 0 else b""
    begin = data.find(b"\n") + 1 if start else 0
    if begin == len(data):
        begin = 0  # one line longer than the bound
    return LogChunk(_readable(data[begin:]), start + len(data), False, start + begin)


def read_around(run: RunDir, key: str, offset: int) -> LogChunk:
    """The line at `offset` with as much before and behind it as fits."""
    path = log_path(run, key)
    start = max(0, offset - MAX_BYTES // 2)
    data = _read(path, start, MAX_BYTES) if path else b""
    begin = data.find(b"\n", 0, offset - start) + 1 if start else 0
    end = data.rfind(b"\n") + 1 or len(data)
    return LogChunk(_readable(data[begin:end]), start + end, True, start + begin)


def find_in_log(run: RunDir, key: str, words: str) -> Hits:
    """The lines of the whole file that hold `words`, upper and lower case alike.

    A file is read block by block, so its size costs time and no memory.
    """
    path, words = log_path(run, key), words.strip()[:MAX_WORDS]
    if path is None or not words:
        return Hits((), more=False)
    wanted = re.compile(re.escape(words.encode()), re.IGNORECASE)
    found: list[Hit] = []
    for number, offset, line in _lines_with(path, wanted):
        if len(found) == MAX_HITS:
            return Hits(tuple(found), more=True)
        found.append(Hit(offset, number, _readable(line).strip()[:MAX_HIT_TEXT]))
    return Hits(tuple(found), more=False)


def _lines_with(path: Path, wanted: re.Pattern[bytes]) -> Iterator[tuple[int, int, bytes]]:
    """Number, offset and bytes of each line that matches."""
    number, offset, rest = 1, 0, b""
    try:
        with path.open("rb") as stream:
            while block := stream.read(BLOCK_BYTES):
                data = rest + block
                end = data.rfind(b"\n") + 1
                if not end and len(data) <= MAX_LINE_BYTES + BLOCK_BYTES:
                    rest = data
                    continue
                end = end or len(data)
                yield from _matching(data[:end], number, offset, wanted)
                number, offset, rest = number + data.count(b"\n", 0, end), offset + end, data[end:]
            yield from _matching(rest, number, offset, wanted)
    except OSError:
        return


def _matching(
    data: bytes, number: int, offset: int, wanted: re.Pattern[bytes]
) -> Iterator[tuple[int, int, bytes]]:
    counted, done = 0, -1
    for match in wanted.finditer(data):
        begin = data.rfind(b"\n", 0, match.start()) + 1
        if begin <= done:
            continue  # the same line once more
        done = begin
        end = data.find(b"\n", match.end())
        number += data.count(b"\n", counted, begin)
        counted = begin
        yield number, offset + begin, data[begin : end if end >= 0 else len(data)]


def _readable(data: bytes) -> str:
    return _ELASTIC.sub(_rank_in_front, fold_returns(data.decode(errors="replace")))


def fold_returns(text: str) -> str:
    """Only the last state of a line that a progress bar drew over and over, without colours."""
    lines = text.replace("\r\n", "\n").split("\n")
    return _ESCAPES.sub("", "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


def _rank_in_front(match: re.Match[str]) -> str:
    return match[2] or f"[{say('log.rank', rank=match[1])}] "


def _rank_folders(run: RunDir) -> dict[int, Path]:
    """Torch elastic writes `logs/none_*/attempt_0/RANK/`; the newest launch counts."""
    found: dict[int, Path] = {}
    for folder in sorted(run.logs.glob("*/attempt_*/*"), key=lambda path: path.stat().st_mtime):
        if folder.name.isdecimal():
            found[int(folder.name)] = folder
    return found


def log_path(run: RunDir, key: str) -> Path | None:
    """A key comes from the page: only the ones that `log_choices` offers lead to a file.

    A link that leads out of the run leads nowhere here.
    """
    path = _named_path(run, key)
    if path is None or not path.resolve().is_relative_to(run.path.resolve()):
        return None
    return path


def _named_path(run: RunDir, key: str) -> Path | None:
    if key == CONSOLE:
        return Path(run.console)
    rank, _, stream = key.partition(".")
    if not rank.isdecimal() or stream not in ("stdout", "stderr"):
        return None
    folder = _rank_folders(run).get(int(rank))
    return folder / f"{stream}.log" if folder else None


def _read(path: Path, start: int, length: int) -> bytes:
    try:
        with path.open("rb") as stream:
            stream.seek(start)
            return stream.read(length)
    except OSError:
        return b""
