"""The logs of a run, by rank, read by byte offset and never from further back than a bound."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ringside.rundir import RunDir
from ringside.words import say

MAX_BYTES = 200_000
MAX_LINE_BYTES = 50_000
CONSOLE = "console"

# Torch elastic writes `[default1]:` before each line of rank 1; ours say `[rank 1]` themselves.
_ELASTIC = re.compile(r"^\[default(\d+)\]:(\[rank \d+\])?", re.MULTILINE)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b\x0c\x0e-\x1f]")


@dataclass(frozen=True)
class LogChunk:
    """New text of a log; `reset` means that it replaces what is shown."""

    text: str
    offset: int
    reset: bool


def log_choices(run: RunDir) -> list[tuple[str, str]]:
    """(label, key) of every log there is: the console first, then each rank's two streams."""
    choices = [(say("log.console"), CONSOLE)]
    for rank in sorted(_rank_folders(run)):
        choices.append((say("log.rank", rank=rank), f"{rank}.stdout"))
        choices.append((say("log.rank_errors", rank=rank), f"{rank}.stderr"))
    return choices


def read_log(run: RunDir, key: str, offset: int | None) -> LogChunk:
    """What was written since `offset`; None, or a file that shrank, starts over near the end."""
    path = _log_path(run, key)
    try:
        size = path.stat().st_size if path else 0
    except OSError:
        size = 0
    reset = offset is None or offset > size or size - offset > MAX_BYTES
    start = max(0, size - MAX_BYTES) if reset or offset is None else offset
    data = _read(path, start, size - start) if path and size > start else b""
    # A line that is not finished, and half a character with it, waits for the next look.
    end = data.rfind(b"\n") + 1
    if not end and len(data) > MAX_LINE_BYTES:
        end = len(data)
    if start and reset:
        data = data[data.find(b"\n") + 1 : end]
    text = fold_returns(data[:end].decode(errors="replace"))
    return LogChunk(_ELASTIC.sub(_rank_in_front, text), start + end, reset)


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


def _log_path(run: RunDir, key: str) -> Path | None:
    """A key comes from the page: only the ones that `log_choices` offers lead to a file."""
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
