"""The tables of `benchmarks/estimate.py`: errors, bars, the order of presets, memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec

from ringside.estimate import Inputs, estimate
from ringside.spec import RunSpec

REPEATS = 5


class Bar(NamedTuple):
    """What the median of absolute errors has to stay within, and the worst of them."""

    median: float | None
    worst: float | None

    @property
    def steady(self) -> float:
        """The spread up to which a row counts: half of the narrowest bar."""
        return min(bar for bar in self if bar is not None) / 2

    def words(self) -> str:
        """As the tables say it."""
        parts = {"median": self.median, "worst": self.worst}
        return ", ".join(f"{bar:.0%} {name}" for name, bar in parts.items() if bar is not None)


BARS = {"replay": Bar(None, 0.03), "one knob": Bar(0.05, None), "one device": Bar(0.10, 0.20)}
MEMORY_BAR = Bar(None, 0.10)
GAP_RATIO = 0.05
"""The fastest preset has to be ranked first where it leads by more than this."""


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds a step of the slowest rank in each repeat, and the largest peak of a device."""

    spec: RunSpec
    step_ms: tuple[float, ...] = ()
    memory_bytes: int | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Row:
    """One comparison; `counts` where the repeats are steady enough for its bar."""

    transport: str
    batch: int
    preset: str
    kind: str
    measured_ms: float
    spread_ratio: float
    predicted_ms: float
    exposed_ratio: float = 0.0
    gain_ratio: float = 0.0

    @property
    def error_ratio(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted_ms / self.measured_ms - 1

    @property
    def counts(self) -> bool:
        """Whether the repeats are steadier than half the bar."""
        return self.spread_ratio < BARS[self.kind].steady


class Visit(Protocol):
    """What was measured and predicted in one visit."""

    def rows(self) -> Iterator[Row]:
        """Every prediction that has a measurement."""

    def cases(self) -> Iterator[tuple[str, Timed]]:
        """(transport, set-up) of all that was timed."""

    def inputs(self, transport: str, spec: RunSpec) -> Inputs:
        """What the prediction of a set-up may know."""


class Order(NamedTuple):
    """Presets of one transport and batch by images a second.

    `is_right`: whether the fastest is ranked first; None where its lead is too small to tell.
    `pairs`: of those that are apart by more than GAP_RATIO, how many are in order, and all.
    """

    transport: str
    batch: int
    fastest: str
    predicted: str
    gap_ratio: float
    is_right: bool | None
    pairs: tuple[int, int]


def spread_ratio(repeats: Sequence[float]) -> float:
    """Half the range around the median, as a share of it."""
    return (max(repeats) - min(repeats)) / 2 / statistics.median(repeats)


def print_report(head: str, bench: Visit) -> bool:
    """Every prediction, then what the bars say, the order of presets, and memory.

    False where a bar is missed.
    """
    print(f"{head}\n")
    rows = list(bench.rows())
    print("| transport | images | preset | kind | measured ms | spread | predicted ms | exposed "
          "| link gain | error | counts |")  # fmt: skip
    print("|---|---:|---|---|---:|---:|---:|---:|---:|---:|---|")
    for row in rows:
        print(
            f"| {row.transport} | {row.batch} | {row.preset} | {row.kind} | {row.measured_ms:.2f} "
            f"| {row.spread_ratio:.1%} | {row.predicted_ms:.2f} | {row.exposed_ratio:.0%} "
            f"| {row.gain_ratio:.0%} | {row.error_ratio:+.1%} "
            f"| {'yes' if row.counts else 'too noisy'} |"
        )
    verdicts = [print_bars(rows), print_order(rows, bench), print_memory(bench)]
    for transport, timed in bench.cases():
        if timed.problem:
            print(f"\n{transport} {timed.spec.preset}: not timed: {timed.problem}")
    return all(verdicts)


def verdict_of(errors: Sequence[float], bar: Bar) -> str:
    """`met` or `missed` by the absolute errors of what counts; `nothing counted` without any."""
    if not errors:
        return "nothing counted"
    is_near = bar.median is None or statistics.median(errors) <= bar.median
    return "met" if is_near and (bar.worst is None or max(errors) <= bar.worst) else "missed"


def print_bars(rows: list[Row]) -> bool:
    """Median and worst error of what counts, by kind; whether no bar is missed."""
    print("\n| kind | counted | median error | worst | bar | |\n|---|---:|---:|---:|---|---|")
    verdicts = []
    for kind, bar in BARS.items():
        of_kind = [row for row in rows if row.kind == kind]
        errors = [abs(row.error_ratio) for row in of_kind if row.counts]
        middle = f"{statistics.median(errors):.1%}" if errors else "–"
        worst = f"{max(errors):.1%}" if errors else "–"
        verdicts.append(verdict_of(errors, bar))
        print(
            f"| {kind} | {len(errors)} of {len(of_kind)} | {middle} | {worst} | {bar.words()} "
            f"| {verdicts[-1]} |"
        )
    return "missed" not in verdicts


def orders(rows: list[Row], images: dict[tuple[str, int, str], int]) -> Iterator[Order]:
    """For each transport and batch with two presets or more, by one device's predictions.

    `images`: of an optimizer step, by transport, images a device and preset.
    """
    own = [row for row in rows if row.kind == "one device"]
    for where in dict.fromkeys((row.transport, row.batch) for row in own):
        here = [row for row in own if (row.transport, row.batch) == where]
        measured = {r.preset: images[(*where, r.preset)] / r.measured_ms for r in here}
        predicted = {r.preset: images[(*where, r.preset)] / r.predicted_ms for r in here}
        order = sorted(measured, key=lambda name: -measured[name])
        if len(order) < 2:
            continue
        gap = measured[order[0]] / measured[order[1]] - 1
        pairs = [
            predicted[fast] > predicted[slow]
            for index, fast in enumerate(order)
            for slow in order[index + 1 :]
            if measured[fast] > (1 + GAP_RATIO) * measured[slow]
        ]
        first = max(predicted, key=lambda name: predicted[name])
        is_right = first == order[0] if gap > GAP_RATIO else None
        yield Order(*where, order[0], first, gap, is_right, (sum(pairs), len(pairs)))


def all_orders(found: Sequence[Order]) -> tuple[str, int, int, int, int]:
    """A verdict, how often the fastest came first and of how many, and the same of pairs."""
    judged = [one.is_right for one in found if one.is_right is not None]
    in_order, pairs = (sum(one.pairs[side] for one in found) for side in (0, 1))
    verdict = "nothing counted" if not judged else "met" if all(judged) else "missed"
    return verdict, sum(judged), len(judged), in_order, pairs


def print_order(rows: list[Row], bench: Visit) -> bool:
    """Each order and their total; whether no leader by more than the gap is ranked lower."""
    images = {
        (transport, timed.spec.micro_batch, timed.spec.preset): timed.spec.global_batch
        for transport, timed in bench.cases()
    }
    found = list(orders(rows, images))
    print("\n| transport | images | fastest measured | predicted | lead | pairs in order | |")
    print("|---|---:|---|---|---:|---:|---|")
    words = {True: "met", False: "missed", None: "nothing counted"}
    for one in found:
        print(
            f"| {one.transport} | {one.batch} | {one.fastest} | {one.predicted} "
            f"| {one.gap_ratio:.1%} | {one.pairs[0]} of {one.pairs[1]} | {words[one.is_right]} |"
        )
    verdict, right, judged, in_order, pairs = all_orders(found)
    print(
        f"| all | | fastest first in {right} of {judged} | | | {in_order} of {pairs} | {verdict} |"
    )
    return verdict != "missed"


def print_memory(bench: Visit) -> bool:
    """Peaks of the allocator, none on a CPU; whether none is missed."""
    lines, errors = [], []
    for transport, timed in bench.cases():
        found = estimate(timed.spec, bench.inputs(transport, timed.spec)).memory_bytes
        if found is not None and timed.memory_bytes:
            error = found / timed.memory_bytes - 1
            errors.append(abs(error))
            lines.append(
                f"| {transport} | {timed.spec.micro_batch} | {timed.spec.preset} "
                f"| {timed.memory_bytes / 2**30:.2f} | {found / 2**30:.2f} | {error:+.1%} |"
            )
    verdict = verdict_of(errors, MEMORY_BAR)
    print("\n| transport | images | preset | measured GiB | predicted GiB | error |")
    print("|---|---:|---|---:|---:|---:|")
    print("\n".join([*lines, f"| all | | | | {MEMORY_BAR.words()} | {verdict} |"]))
    return verdict != "missed"
