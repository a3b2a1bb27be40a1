"""How a rank says why it ends: one small file per rank, so the first cause is never lost."""

from __future__ import annotations

import errno
import re
import sys
import time
import traceback
from contextlib import suppress
from typing import NamedTuple

import msgspec
import torch

from ringside.errors import DataError, RingsideError, RunDirError, SetupError
from ringside.records import RankError
from ringside.rundir import RunDir
from ringside.words import say
from training import flight

MAX_TRACEBACK = 20_000


class Kind(NamedTuple):
    """A failure that is recognised by its type or its text, and said by a word of `rank_error`.

    `says` None: its own words. A group of the pattern is a value of the sentence.
    """

    cause: str
    types: tuple[type[BaseException], ...]
    pattern: str
    says: str | None


# The first that fits counts. Texts are those of torch 2.11 and 2.14, gloo and NCCL 2.27 to 2.29.
KINDS = (
    Kind(
        "shared_memory",
        (),
        r"Bus error|out of shared memory|unable to (?:write to file|mmap).*/torch_",
        "shared_memory",
    ),
    Kind(
        "loader_worker",
        (),
        r"DataLoader worker \(pid(?:\(s\))? (?P<pids>[\d, ]+)\) (?:is killed|exited)",
        "loader_worker",
    ),
    Kind(
        "gpu_memory",
        (torch.OutOfMemoryError,),
        r"CUDA error: out of memory|CUDA out of memory|Cuda failure.*out of memory"
        r"|CUBLAS_STATUS_ALLOC_FAILED",
        "gpu_memory",
    ),
    Kind("memory", (MemoryError,), r"DefaultCPUAllocator|[Cc]annot allocate memory", "memory"),
    Kind("disk_full", (), r"No space left on device|Disk quota exceeded", "disk_full"),
    Kind("port", (), r"EADDRINUSE|(?i:address already in use)", "port"),
    Kind(
        "timeout", (), r"No progress for (?P<seconds>\d+) s at step (?P<step>\d+)\.", "no_progress"
    ),
    Kind(
        "timeout",
        (),
        r"Timed out waiting|timed out after|NCCL timeout|Socket Timeout|[Ww]ait timeout"
        r"|Application timeout caused pair closure|collective operation timeout",
        "timeout",
    ),
    Kind(
        "lost_connection",
        (ConnectionError,),
        r"Connection closed by peer|Connection reset by peer|Connection refused|Socket closed"
        r"|Broken pipe|failed to recv|recvValue failed|sendBytes failed|remote process exited"
        r"|ncclRemoteError|communicator was aborted",
        "lost_connection",
    ),
    Kind("import", (ImportError,), r"$.", None),
    Kind("setup", (), r"more than 1 value per channel", "one_image"),
    Kind("left", (SystemExit,), r"$.", "left"),
)

OWN_KINDS: dict[type[RingsideError], str] = {
    DataError: "data",
    SetupError: "setup",
    RunDirError: "files",
}
NOT_FINITE = "not a finite number"
FULL = {errno.ENOSPC, errno.EDQUOT}


def recognise(error: BaseException) -> tuple[str, str]:
    """(cause in one word, one sentence for a person)."""
    text = str(error)
    if isinstance(error, RingsideError):
        return _own_cause(error, text), text
    if isinstance(error, OSError) and error.errno in FULL:
        text += " No space left on device"
    for kind in KINDS:
        found = re.search(kind.pattern, text)
        if found or isinstance(error, kind.types):
            if kind.says is None:
                return kind.cause, _own_words(error)
            values = found.groupdict() if found else {}
            return kind.cause, say(f"rank_error.{kind.says}", **values)
    return "error", _own_words(error)


def describe(error: BaseException) -> str:
    """One sentence for a person."""
    return recognise(error)[1]


def _own_cause(error: RingsideError, text: str) -> str:
    if NOT_FINITE in text:
        return "not_finite"
    if any(word in text for word in ("No space left on device", "Disk quota exceeded")):
        return "disk_full"
    return next((name for kind, name in OWN_KINDS.items() if isinstance(error, kind)), "request")


def _own_words(error: BaseException) -> str:
    """`KeyError: 'red'`; of an error that a loader worker passed on, the line of the worker."""
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    if lines and re.match(r"Caught \w+ in DataLoader worker process", lines[0]):
        return lines[-1].strip()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def write_error(run: RunDir, rank: int, error: BaseException) -> None:
    """Leave `ranks/rankN.error.json`, on a full disk too if a supervisor set space aside."""
    user = isinstance(error, RingsideError)
    cause, sentence = recognise(error)
    record = RankError(
        rank=rank,
        t=time.time(),
        sentence=sentence,
        traceback=None if user else "".join(traceback.format_exception(error))[-MAX_TRACEBACK:],
        user_error=user,
        cause=cause,
    )
    path = run.ranks / f"rank{rank}.error.json"
    with suppress(RunDirError):
        run.write_last_words(path, record)
        # Written first: the recorder asks the device, which may be what hangs.
        if collective := None if user else flight.last_collective():
            run.write(path, msgspec.structs.replace(record, last_collective=collective))


def print_error(rank: int, error: BaseException) -> None:
    """The sentence, and the traceback where a person cannot mend the cause."""
    if not isinstance(error, RingsideError):
        traceback.print_exception(error)
    print(f"[rank {rank}] {describe(error)}", file=sys.stderr, flush=True)
