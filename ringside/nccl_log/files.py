"""Finds the logs that a person means and reads them, plain or gzipped, whole or cut off."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from ringside.errors import RingsideError
from ringside.nccl_log.collector import Collector
from ringside.nccl_log.facts import NcclLog
from ringside.nccl_log.lines import split
from ringside.nccl_log.rules import read_line
from ringside.words import say

_GZIP = b"\x1f\x8b"
# NCCL cuts its own lines at about 1,000 characters; longer ones are not its own.
_MAX_LINE_BYTES = 1 << 16
# Of one file. What NCCL says of itself comes first; a longer log repeats a line for every call.
MAX_BYTES = 64 << 20
# What a folder may hold, the first that is there: a run's own logs, some folder of logs, a console.
_IN_FOLDER = ("nccl/*.log", "nccl/*.log.gz", "*nccl*.log", "*nccl*.log.gz", "console.log")


def read_nccl_log(paths: Iterable[Path]) -> NcclLog:
    """The facts of one job's logs: one file per rank, a console of all ranks, or a run directory.

    Raises RingsideError, in one sentence, for what is missing, empty or holds no line of NCCL.
    """
    files = list(dict.fromkeys(file.resolve() for path in paths for file in _files(path)))
    if not files:
        raise RingsideError(say("nccl.no_log_named"))
    facts, notes = Collector(), []
    for file in files:
        before = facts.num_lines + facts.num_torn
        fault = _read_file(file, facts)
        if fault is not None:
            notes.append(fault)
        if facts.num_lines + facts.num_torn == before:
            notes.append(_nothing_in(file))
    if facts.num_lines == 0:
        raise RingsideError(_refusal(files, torn=facts.num_torn > 0))
    return facts.finish(tuple(notes))


def read_text(text: str) -> NcclLog:
    """The facts of a log that is text already; a text without NCCL's lines has none."""
    facts = Collector()
    for line in text.splitlines(keepends=True):
        _read_console_line(line, facts)
    return facts.finish()


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    for pattern in _IN_FOLDER:
        found = sorted(file for file in path.glob(pattern) if file.is_file())
        if found:
            return found
    raise RingsideError(say("nccl.no_log", path=path, how=say("nccl.how_to")))


def _read_file(path: Path, facts: Collector) -> str | None:
    """Read one file to its end; a sentence where that is not its real end."""
    num_bytes = 0
    try:
        with _open(path) as stream:
            for line in _console_lines(stream.readline):
                _read_console_line(line, facts)
                num_bytes += len(line)
                if num_bytes > MAX_BYTES:
                    return say("nccl.first_part", name=path.name, limit=MAX_BYTES >> 20)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        return say("nccl.cut_off", name=path.name)
    except FileNotFoundError:
        raise RingsideError(say("nccl.no_file", path=path)) from None
    except OSError as error:
        raise RingsideError(
            say("nccl.unreadable", path=path, why=error.strerror or error)
        ) from None
    return None


def _open(path: Path) -> BinaryIO | gzip.GzipFile:
    with path.open("rb") as stream:
        is_gzip = stream.read(len(_GZIP)) == _GZIP
    return gzip.open(path) if is_gzip else path.open("rb")


def _console_lines(readline: Callable[[int], bytes]) -> Iterator[str]:
    while line := readline(_MAX_LINE_BYTES):
        yield line.decode("utf-8", errors="replace")


def _read_console_line(line: str, facts: Collector) -> None:
    whole, num_torn = split(line)
    facts.num_torn += num_torn
    for one in whole:
        read_line(facts, one)


def _nothing_in(file: Path) -> str:
    is_empty = file.stat().st_size == 0
    return say("nccl.empty", name=file.name) if is_empty else say("nccl.no_line", name=file.name)


def _refusal(files: list[Path], *, torn: bool) -> str:
    if torn:
        return say("nccl.torn", names=_names(files), how=say("nccl.how_to"))
    number = "is" if len(files) == 1 else "are"
    what = "empty" if all(file.stat().st_size == 0 for file in files) else "no_log"
    return say(f"nccl.{number}_{what}", names=_names(files), how=say("nccl.how_to"))


def _names(files: list[Path]) -> str:
    names = ", ".join(str(file) for file in files[:3])
    return say("nccl.and_more", names=names) if len(files) > 3 else names
