"""The command that reads profiler traces and says what holds a run back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from app.commands.reading import print_json
from app.commands.verdict import diagnosis_json, print_diagnosis
from ringside.doctor import case_of_files, diagnose
from ringside.trace import Facts, RankFacts, judge
from ringside.trace.files import shown
from ringside.trace.report import report_of
from ringside.words import percent, say

if TYPE_CHECKING:
    from rich.table import Table

MAX_BUCKETS = 6
# Parts of a step, in the order of the breakdown, by the names of `Breakdown`.
PARTS = (
    "compute", "exposed_transfer", "exposed_wait", "memory", "data_idle", "host_wait",
    "kernel_wait", "other_idle",
)  # fmt: skip


def trace(paths: list[Path], *, as_json: bool, logs: Sequence[Path] = ()) -> int:
    """Print what the traces, and NCCL's logs of the same job, say; 1 when a file cannot be used."""
    case = case_of_files(paths, logs)
    facts = case.facts
    assert facts is not None  # there is at least one path
    bad, case = list(case.problems), replace(case, problems=())
    for sentence in bad:
        print(sentence, file=sys.stderr)
    if as_json:
        report = report_of(facts, judge(facts), bad)
        diagnosis = diagnosis_json(diagnose(case), None)
        print_json({**msgspec.structs.asdict(report), "diagnosis": diagnosis})
    else:
        _print(facts)
        print()
        print_diagnosis(diagnose(case))
    return 1 if bad else 0


def _print(facts: Facts) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    print(say("trace.legend"))
    console.print(_breakdown(facts))
    print("\n" + say("trace.sums"))
    console.print(_sums(facts))
    if facts.pace.buckets:
        print("\n" + say("trace.messages", rank=facts.pace.rank))
        console.print(_buckets(facts.pace))
    for note in _notes(facts):
        print(f"\n{note}")


def _breakdown(facts: Facts) -> Table:
    parts_told = (say(f"trace.part_{part}") for part in PARTS)
    table = _table(say("column.rank"), say("trace.steps"), say("column.step_ms"), *parts_told)
    for rank in facts.ranks:
        parts = rank.breakdown
        step_ms = parts.wall_us / rank.num_counted_steps / 1000
        shares = [f"{100 * parts.ratio(part):.1f}" for part in PARTS]
        table.add_row(str(rank.rank), str(rank.num_steps or "-"), f"{step_ms:.1f}", *shares)
    return table


def _sums(facts: Facts) -> Table:
    heads = (
        "column.rank", "trace.span", "trace.part_compute", "trace.comm", "trace.overlapped",
        "trace.overlap", "trace.exposed", "trace.part_exposed_transfer", "trace.part_exposed_wait",
        "trace.idle",
    )  # fmt: skip
    table = _table(*map(say, heads))
    for rank in facts.ranks:
        sums = rank.totals
        overlap = "-" if sums.overlap_ratio is None else percent(sums.overlap_ratio, 1)
        table.add_row(
            str(rank.rank), _ms(sums.span_us), _ms(sums.compute_us), _ms(sums.comm_us),
            _ms(sums.overlapped_us), overlap, _ms(sums.exposed_us), _ms(rank.transfer_us),
            _ms(rank.wait_us), _ms(sums.idle_us),
        )  # fmt: skip
    return table


def _buckets(rank: RankFacts) -> Table:
    heads = ("dtype", "took_ms", "transfer_ms", "busbw")
    words = (say(f"trace.{name}") for name in heads)
    table = _table(say("trace.message"), say("trace.a_step"), "MB", *words)
    for bucket in rank.buckets[:MAX_BUCKETS]:
        size, busbw = bucket.num_bytes, bucket.busbw_bytes_per_s
        table.add_row(
            (bucket.operation or say("trace.unknown")).replace("_", "-"),
            f"{bucket.num_per_step:.0f}",
            "-" if size is None else f"{size / 1e6:.2f}",
            shown(bucket.dtype or "-"),
            f"{bucket.duration_us / 1000:.3f}",
            f"{bucket.transfer_us / 1000:.3f}",
            "-" if busbw is None else f"{busbw / 1e9:.2f}",
        )
    if len(rank.buckets) > MAX_BUCKETS:
        table.add_row(say("trace.more_messages", n=len(rank.buckets) - MAX_BUCKETS))
    return table


def _notes(facts: Facts) -> list[str]:
    """What keeps the figures from being what they seem."""
    pace = facts.pace
    notes = []
    if any(rank.is_wait_estimate for rank in facts.ranks):
        notes.append(say("trace.wait_estimated"))
    elif facts.is_matched and pace.world_size and len(facts.ranks) < pace.world_size:
        notes.append(say("trace.some_ranks", n=len(facts.ranks), of=pace.world_size))
    if pace.is_cpu_estimate:
        notes.append(say("trace.cpu_estimate"))
    if not pace.num_steps:
        notes.append(say("trace.unmarked"))
    return notes


def _table(*titles: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for number, title in enumerate(titles):
        table.add_column(title, justify="right" if number else "left", no_wrap=True)
    return table


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:,.1f}"
