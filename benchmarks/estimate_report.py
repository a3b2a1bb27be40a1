"""The tables of `benchmarks/estimate.py`: errors, bars, the order of presets, memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from ringside.estimate import Inputs, estimate
from ringside.spec import RunSpec

BARS = {"replay": 0.03, "one knob": 0.05, "one device": 0.10}
GAP_RATIO = 0.05


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """What `estimate_ranks.py` writes for each set-up."""

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
    exposed_ratio: float

    @property
    def error_ratio(self) -> float:
        """(predicted - measured) / measured."""
        return self.predicted_ms / self.measured_ms - 1

    @property
    def counts(self) -> bool:
        """Whether the repeats are steadier than half the bar."""
        return self.spread_ratio < BARS[self.kind] / 2


class Visit(Protocol):
    """What was measured and predicted in one visit."""

    def rows(self) -> Iterator[Row]:
        """Every prediction that has a measurement."""

    def cases(self) -> Iterator[tuple[str, Timed]]:
        """(transport, set-up) of all that was timed."""

    def inputs(self, transport: str, spec: RunSpec) -> Inputs:
        """What the prediction of a set-up may know."""


def print_report(head: str, bench: Visit) -> None:
    """Every prediction, then what the bars say, the order of presets, and memory."""
    print(f"{head}\n")
    rows = list(bench.rows())
    print("| transport | images | preset | kind | measured ms | spread | predicted ms | exposed "
          "| error | counts |")  # fmt: skip
    print("|---|---:|---|---|---:|---:|---:|---:|---:|---|")
    for row in rows:
        print(
            f"| {row.transport} | {row.batch} | {row.preset} | {row.kind} | {row.measured_ms:.2f} "
            f"| {row.spread_ratio:.1%} | {row.predicted_ms:.2f} | {row.exposed_ratio:.0%} "
            f"| {row.error_ratio:+.1%} | {'yes' if row.counts else 'too noisy'} |"
        )
    print_bars(rows)
    print_order(rows, bench)
    print_memory(bench)
    for transport, timed in bench.cases():
        if timed.problem:
            print(f"\n{transport} {timed.spec.preset}: not timed: {timed.problem}")


def print_bars(rows: list[Row]) -> None:
    """Median and worst error of what counts, by kind."""
    print("\n| kind | counted | median error | worst | bar |\n|---|---:|---:|---:|---:|")
    for kind, bar in BARS.items():
        of_kind = [row for row in rows if row.kind == kind]
        errors = sorted(abs(row.error_ratio) for row in of_kind if row.counts)
        middle = f"{statistics.median(errors):.1%}" if errors else "–"
        worst = f"{errors[-1]:.1%}" if errors else "–"
        print(f"| {kind} | {len(errors)} of {len(of_kind)} | {middle} | {worst} | {bar:.0%} |")


def print_order(rows: list[Row], bench: Visit) -> None:
    """Whether the fastest is ranked first, and how many pairs with a gap are in order."""
    images = {
        (transport, timed.spec.micro_batch, timed.spec.preset): timed.spec.global_batch
        for transport, timed in bench.cases()
    }
    print("\n| transport | images | fastest measured | predicted | gap | pairs in order |")
    print("|---|---:|---|---|---:|---:|")
    groups = dict.fromkeys((row.transport, row.batch) for row in rows)
    for where in groups:
        here = [
            row for row in rows
            if (row.transport, row.batch) == where and row.kind == "one device"
        ]  # fmt: skip
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
        verdict = "" if gap <= GAP_RATIO else " right" if first == order[0] else " WRONG"
        print(
            f"| {where[0]} | {where[1]} | {order[0]} | {first}{verdict} | {gap:.1%} "
            f"| {sum(pairs)} of {len(pairs)} |"
        )


def print_memory(bench: Visit) -> None:
    """Peaks of the allocator; none on a CPU."""
    lines = []
    for transport, timed in bench.cases():
        found = estimate(timed.spec, bench.inputs(transport, timed.spec)).memory_bytes
        if found is not None and timed.memory_bytes:
            error = found / timed.memory_bytes - 1
            lines.append(
                f"| {transport} | {timed.spec.micro_batch} | {timed.spec.preset} "
                f"| {timed.memory_bytes / 2**30:.2f} | {found / 2**30:.2f} | {error:+.1%} |"
            )
    if lines:
        print("\n| transport | images | preset | measured GiB | predicted GiB | error |")
        print("|---|---:|---|---:|---:|---:|")
        print("\n".join(lines))
