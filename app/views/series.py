"""The curves of one run as they grow: thinned for a plot, sent in increments.

A line keeps the lowest and the highest value of each bucket of neighbours, so that no spike is
lost. When there are too many buckets, each two become one: what was sent stays valid until then.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple

from ringside.events import WindowTimed
from ringside.run import EpochRow, RunRecord

MAX_POINTS = 2000
SCORES = {"val_loss": "val_loss", "auc": "auc_macro", "f1": "f1_macro", "map": "map_macro"}
WINDOWS = {
    "train_loss": "train_loss", "rate": "samples_per_s", "step_ms": "step_ms",
    "learning_rate": "learning_rate",
}  # fmt: skip
LINES = (*WINDOWS, *SCORES, "step_p50", "step_p95")


class Spot(NamedTuple):
    """One value: after how many optimizer steps and seconds of training."""

    step: int
    time_s: float
    value: float


class Bucket(NamedTuple):
    """The lowest and the highest of some neighbours."""

    low: Spot
    high: Spot

    def joined(self, other: Bucket) -> Bucket:
        """The lowest and the highest of both."""
        low = min(self.low, other.low, key=lambda spot: spot.value)
        return Bucket(low, max(self.high, other.high, key=lambda spot: spot.value))

    def spots(self) -> tuple[Spot, ...]:
        """In the order of time; one where both are the same."""
        first, second = sorted(self)
        return (first,) if first == second else (first, second)


class Line:
    """A growing line of at most `limit` spots (see the module)."""

    def __init__(self, limit: int = MAX_POINTS) -> None:
        self._most = limit // 2 - 2
        self._full: list[Bucket] = []
        self._open: Bucket | None = None
        self._newest: Spot | None = None
        self._size = 1
        self._in_open = 0
        self.total = 0

    def add(self, spot: Spot) -> None:
        """Take one more."""
        self.extend([spot.step], [spot.time_s], [spot.value])

    def extend(
        self, steps: Sequence[int], times: Sequence[float], values: Sequence[float | None]
    ) -> None:
        """Take many, as if one by one; a value that is None or not finite is left out."""
        places = [i for i, value in enumerate(values) if value is not None and isfinite(value)]
        if not places:
            return
        self.total += len(places)
        while self.total // self._size > self._most:
            self._double()

        def spot(i: int) -> Spot:
            return Spot(steps[i], times[i], values[i])  # type: ignore[arg-type]

        begin = 0
        while begin < len(places):
            # Blocks, because a long run brings a hundred thousand points at once.
            block = places[begin : begin + self._size - self._in_open]
            begin += len(block)
            low, high = (pick(block, key=values.__getitem__) for pick in (min, max))  # type: ignore[type-var, arg-type]
            found = Bucket(spot(low), spot(high))
            self._open = found if self._open is None else self._open.joined(found)
            self._in_open += len(block)
            if self._in_open == self._size:
                self._full.append(self._open)
                self._open, self._in_open = None, 0
        self._newest = spot(places[-1])

    def _double(self) -> None:
        """Each two buckets become one; an odd one is open again, with what was open behind it."""
        pairs, odd = divmod(len(self._full), 2)
        rest = self._full[-1] if odd else None
        self._full = [self._full[2 * i].joined(self._full[2 * i + 1]) for i in range(pairs)]
        if rest is not None:
            self._open = rest if self._open is None else rest.joined(self._open)
            self._in_open += self._size
        self._size *= 2

    def spots(self) -> list[Spot]:
        """All that are kept; the newest is the last."""
        return [*self._closed(0), *self._tail()]

    def since(self, cursor: object) -> tuple[list[int], int, list[Spot]] | None:
        """What a viewer with `cursor` lacks: the next cursor, from which place on, the spots.

        None when there is nothing new. A cursor that fits no more, or none, gets all from 0.
        """
        match cursor:
            case [int(size), int(full), int(place), int(total)] if (
                size == self._size and 0 <= full <= len(self._full) and total <= self.total
            ):
                if total == self.total:
                    return None
            case _:
                if not self.total:
                    return None
                full = place = 0
        closed = self._closed(full)
        after = [self._size, len(self._full), place + len(closed), self.total]
        return after, place, [*closed, *self._tail()]

    def _closed(self, begin: int) -> list[Spot]:
        return [spot for bucket in self._full[begin:] for spot in bucket.spots()]

    def _tail(self) -> list[Spot]:
        """What may still change: the open bucket, and the newest spot for its own sake."""
        spots = list(self._open.spots()) if self._open else []
        last = spots[-1] if spots else self._full[-1].spots()[-1] if self._full else None
        if self._newest is not None and last != self._newest:
            spots.append(self._newest)
        return spots


class RunSeries:
    """The lines of one run; each window and each epoch is taken once."""

    def __init__(self, limit: int = MAX_POINTS) -> None:
        self.lines = {name: Line(limit) for name in LINES}
        self._windows = self._epochs = 0
        self._within: tuple[int, float] = (0, 0.0)
        self._begins = self._trained_s = 0.0
        self._step_ms: dict[int, list[float]] = {}

    def take(self, record: RunRecord) -> None:
        """What is new in the record; nothing before the set-up stands."""
        if record.started is None:
            return
        windows = record.windows[self._windows :]
        steps = [window.step for window in windows]
        times = list(self._times(windows, record.epochs))
        for name, field in WINDOWS.items():
            self.lines[name].extend(steps, times, [getattr(window, field) for window in windows])
        for window in windows:
            if not window.profiled:
                self._step_ms.setdefault(window.epoch, []).append(window.step_ms)
        self._windows = len(record.windows)
        for row in self._ready(record.epochs):
            self._trained_s += row.epoch_time_s
            self._take_epoch(row, row.epoch * record.started.steps_per_epoch)

    def _times(self, windows: list[WindowTimed], rows: list[EpochRow]) -> Iterator[float]:
        """Seconds of training until the end of each window: the epochs before, then its own."""
        epoch, within = self._within
        for window in windows:
            if window.epoch != epoch:
                done = (row.epoch_time_s for row in rows if row.epoch < window.epoch)
                self._begins, epoch, within = sum(done), window.epoch, 0.0
            within += window.step_ms * window.num_steps / 1000
            yield self._begins + within
        self._within = (epoch, within)

    def _ready(self, rows: list[EpochRow]) -> Iterator[EpochRow]:
        """Epochs that will not change any more; the newest may still wait for its scores."""
        for row in rows[self._epochs :]:
            if row.num_evaluated is None and row is rows[-1]:
                return
            self._epochs += 1
            yield row

    def _take_epoch(self, row: EpochRow, step: int) -> None:
        for name, field in SCORES.items():
            value = getattr(row, field)
            if value is not None:
                self.lines[name].add(Spot(step, self._trained_s, value))
        times = self._step_ms.pop(row.epoch, [])
        if times:
            p50, p95 = quantiles(times)
            self.lines["step_p50"].add(Spot(step, self._trained_s, p50))
            self.lines["step_p95"].add(Spot(step, self._trained_s, p95))

    def since(self, cursors: object) -> tuple[dict[str, Any], dict[str, Any]]:
        """By line: the next cursors of all, and what a viewer with `cursors` lacks."""
        held = cursors if isinstance(cursors, dict) else {}
        after, found = {}, {}
        for name, line in self.lines.items():
            if (news := line.since(held.get(name))) is None:
                if name in held:
                    after[name] = held[name]
                continue
            after[name], place, spots = news
            found[name] = {"at": place, "points": [_short(spot) for spot in spots]}
        return after, found


def quantiles(values: list[float]) -> tuple[float, float]:
    """The median and the 95th percentile, between neighbours in proportion."""
    if len(values) == 1:
        return values[0], values[0]
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return cuts[9], cuts[18]


def _short(spot: Spot) -> list[float]:
    """A plot needs no more figures than these."""
    return [spot.step, float(f"{spot.time_s:.6g}"), float(f"{spot.value:.6g}")]
