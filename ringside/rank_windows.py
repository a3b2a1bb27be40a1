"""What each rank measured of its own steps, and which of them keeps the others waiting.

`ranks/rankN.jsonl` holds a line a window. Ranks of one strategy wait for each other, so the times
of whole steps are alike; the parts tell them apart. A late rank is long in a part of its own work
(data, forward, host) and short in backward, where the others wait for it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from ringside.events import without_starts
from ringside.rundir import RunDir, iter_files

NUM_WINDOWS = 20
MAX_TAIL_BYTES = 1 << 16
OwnWork = Literal["data", "forward", "host"]
OWN_WORK: tuple[OwnWork, ...] = ("data", "forward", "host")


class RankWindow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `ranks/rankN.jsonl`: this rank's means per optimizer step over a window.

    `host_ms` is how long the host took to issue a step, waiting for data left out. On a GPU it is
    short of `step_ms` where the device sets the pace. `profiled`: torch.profiler was recording.
    """

    t: float
    epoch: int
    step: int
    num_steps: int
    step_ms: float
    data_ms: float
    forward_ms: float
    backward_ms: float
    optimizer_ms: float
    host_ms: float | None = None
    profiled: bool = False


class RankParts(msgspec.Struct, frozen=True, kw_only=True):
    """Means per optimizer step of one rank over its last windows; `num_steps` in all of them."""

    rank: int
    num_steps: int
    step_ms: float
    data_ms: float
    forward_ms: float
    backward_ms: float
    optimizer_ms: float
    host_ms: float | None = None


class Slowest(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that takes longest for a part of its own work.

    `excess_ms` is how much longer than the median of the other ranks, `excess_ratio` the same as a
    share of its step.
    """

    part: OwnWork
    rank: int
    ms: float
    excess_ms: float
    excess_ratio: float


def read_rank_windows(run: RunDir) -> dict[int, list[RankWindow]]:
    """The last windows of each rank, oldest first; reads only the ends of the files.

    Lines that cannot be read are passed over, and so are windows in which the profiler recorded.
    """
    found = {}
    for path in iter_files(run.ranks, "rank*.jsonl"):
        number = path.stem.removeprefix("rank")
        if number.isdecimal():
            windows = _windows(_tail(path))
            found[int(number)] = windows[-NUM_WINDOWS:]
    return dict(sorted(found.items()))


def rank_parts(run: RunDir) -> tuple[RankParts, ...]:
    """Means over the last windows of every rank that has any, by rank.

    Only the newest epoch counts, without the step in which it starts.
    """
    found = read_rank_windows(run)
    newest = max((window.epoch for rows in found.values() for window in rows), default=0)
    parts = (
        _mean(rank, without_starts([window for window in rows if window.epoch == newest]))
        for rank, rows in found.items()
    )
    return tuple(part for part in parts if part is not None)


def slowest(ranks: Sequence[RankParts]) -> tuple[Slowest, ...]:
    """For each part of a rank's own work the slowest rank, the largest excess first.

    Empty with fewer than two ranks: there is nobody to compare with.
    """
    if len(ranks) < 2:
        return ()
    found = [one for part in OWN_WORK if (one := _slowest(part, ranks)) is not None]
    return tuple(sorted(found, key=lambda one: -one.excess_ms))


def _slowest(part: OwnWork, ranks: Sequence[RankParts]) -> Slowest | None:
    times = {rank.rank: getattr(rank, f"{part}_ms") for rank in ranks}
    if None in times.values():
        return None
    late = max(ranks, key=lambda rank: times[rank.rank])
    ms = times.pop(late.rank)
    excess_ms = ms - statistics.median(times.values())
    ratio = excess_ms / late.step_ms if late.step_ms else 0.0
    return Slowest(part=part, rank=late.rank, ms=ms, excess_ms=excess_ms, excess_ratio=ratio)


def _mean(rank: int, windows: list[RankWindow]) -> RankParts | None:
    steps = sum(window.num_steps for window in windows)
    if not steps:
        return None

    def mean(name: str) -> float:
        total: float = sum(getattr(window, name) * window.num_steps for window in windows)
        return total / steps

    knows_host = all(window.host_ms is not None for window in windows)
    return RankParts(
        rank=rank, num_steps=steps, step_ms=mean("step_ms"), data_ms=mean("data_ms"),
        forward_ms=mean("forward_ms"), backward_ms=mean("backward_ms"),
        optimizer_ms=mean("optimizer_ms"), host_ms=mean("host_ms") if knows_host else None,
    )  # fmt: skip


def _windows(data: bytes) -> list[RankWindow]:
    windows = []
    for line in data.splitlines():
        try:
            windows.append(msgspec.json.decode(line, type=RankWindow))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return [window for window in windows if not window.profiled]


def _tail(path: Path) -> bytes:
    """The whole lines at the end of a file; a torn last line is left out."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - MAX_TAIL_BYTES))
            data = stream.read()
    except OSError:
        return b""
    begin = 0 if size <= MAX_TAIL_BYTES else data.find(b"\n") + 1
    return data[begin : data.rfind(b"\n") + 1]
