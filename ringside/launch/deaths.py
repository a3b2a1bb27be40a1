"""How the ranks of a run died, as the launcher reported it on the console."""

from __future__ import annotations

import os
import re
import signal

from ringside.rundir import RunDir

TAIL_BYTES = 64 * 1024

# torch elastic's report: "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 6130)".
# It lists the other failures first and the root cause last.
_ELASTIC_RANK = re.compile(rb"rank +: (\d+) \(local_rank: \d+\)\s+exitcode +: (-?\d+) ")
# Accelerate's launcher of a single process, through subprocess.CalledProcessError.
_SINGLE_CODE = re.compile(rb"CalledProcessError: .* returned non-zero exit status (\d+)\.")
_SINGLE_SIGNAL = re.compile(rb"CalledProcessError: .* died with <Signals\.(\w+): \d+>")
# NCCL's watchdog, which aborts a rank: "WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=25, ...".
_NCCL_TIMEOUT = re.compile(rb"WorkNCCL\(SeqNum=(\d+), OpType=(\w+), NumelIn=(\d+)")


def rank_deaths(run: RunDir) -> list[tuple[int, int]]:
    """(rank, exit code) of the ranks that failed, the root cause last; negative: a signal."""
    tail = console_tail(run)
    deaths = [(int(rank), int(code)) for rank, code in _ELASTIC_RANK.findall(tail)]
    deaths += [(0, int(code)) for code in _SINGLE_CODE.findall(tail)]
    deaths += [(0, -signal.Signals[name.decode()]) for name in _SINGLE_SIGNAL.findall(tail)]
    return deaths


def nccl_timeout(run: RunDir) -> str | None:
    """The collective that NCCL's watchdog gave up, or None."""
    found = _NCCL_TIMEOUT.search(console_tail(run))
    if found is None:
        return None
    number, name, count = (group.decode() for group in found.groups())
    return f"nccl:{name.lower()} {number} of {count} elements"


def signal_name(code: int) -> str:
    """`SIGKILL` for -9; `signal 40` for a number without a name."""
    known = {number.value: number.name for number in signal.Signals}
    return known.get(-code, f"signal {-code}")


def console_tail(run: RunDir) -> bytes:
    """The last 64 KiB of the console; empty without one."""
    try:
        with run.console.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - TAIL_BYTES))
            return bytes(stream.read())
    except OSError:
        return b""
