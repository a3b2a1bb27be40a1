"""What a run does just now, in sentences: a standstill, open requests, how busy its devices are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ringside.asking import asked_lines
from ringside.hang import Standstill
from ringside.launch.blame import waiting_sentence
from ringside.remedies import failure_kind, what_to_try
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.samples import Series, read_samples, reason_told, series_of, throttled
from ringside.words import say

GIB = 2**30
GIGA = 1e9
OFTEN_RATIO = 0.05


def watch_lines(record: RunRecord) -> tuple[str, ...]:
    """Everything of this module that a terminal shows of a run."""
    return (*hang_lines(record, time.time()), *asked_lines(record), *sample_lines(record))


def hang_lines(record: RunRecord, now: float) -> tuple[str, ...]:
    """That the run probably hangs, and who waits for whom; how often it stood still before."""
    if record.hang is None:
        return ()
    past = [_past(one) for one in record.hang.past]
    current = record.hang.now
    if current is None:
        return tuple(past)
    if record.final:
        return (*past, say("stacks.at_end", step=current.step))
    return (*past, standstill_sentence(current, now), say("stacks.look", run=record.name))


def standstill_sentence(standstill: Standstill, now: float) -> str:
    """How long nothing has moved, against what steps take, and who waits for whom."""
    seconds, p95_ms = standstill.lasted_s(now), standstill.p95_step_ms
    who = waiting_sentence(standstill.marks, now)
    if p95_ms is None:
        return say("stacks.now_first", seconds=seconds, who=who)
    return say("stacks.now", seconds=seconds, step=p95_ms / 1000, who=who)


def remedy_lines(record: RunRecord) -> tuple[str, ...]:
    """What to try after a failure, for a terminal."""
    return tuple(say("remedy.try", what=what) for what in what_to_try(record))


def _past(standstill: Standstill) -> str:
    seconds = standstill.lasted_s(standstill.since)
    return say("stacks.past", seconds=seconds, step=standstill.step)


def sample_lines(record: RunRecord) -> tuple[str, ...]:
    """One line for each GPU, and where there is none, for each rank; from all samples kept."""
    samples = read_samples(RunDir(Path(record.path)))
    rows: dict[tuple[str, int], dict[str, Series]] = {}
    for one in series_of(samples, max_points=4):
        rows.setdefault((one.of, one.index), {})[one.name] = one
    kind = "gpu" if any(of == "gpu" for of, _ in rows) else "rank"
    slowed = throttled(samples)
    return tuple(
        _line(kind, index, names, slowed.get(index, {}))
        for (of, index), names in rows.items() if of == kind
    )  # fmt: skip


def _line(kind: str, index: int, names: dict[str, Series], slowed: dict[str, float]) -> str:
    parts = list(_gpu_parts(names, slowed) if kind == "gpu" else _rank_parts(names))
    return say(f"samples.{kind}", index=index, parts=", ".join(parts))


def _gpu_parts(names: dict[str, Series], slowed: dict[str, float]) -> Iterator[str]:
    if busy := names.get("utilisation_ratio"):
        yield say("samples.busy", p50=100 * busy.p50, max=100 * busy.max)
    if memory := names.get("memory_used_bytes"):
        total = (memory.limit or memory.max) / GIB
        yield say("samples.memory_of", max=memory.max / GIB, total=total)
    if power := names.get("power_w"):
        yield say("samples.power", p50=power.p50, max=power.max)
    for link in ("pcie", "nvlink"):
        sent, received = (names.get(f"{link}_{way}_bytes_per_s") for way in ("tx", "rx"))
        if sent and received:
            name, out, back = say(f"samples.{link}"), sent.p50 / GIGA, received.p50 / GIGA
            yield say("samples.link", link=name, sent=out, received=back)
    for reason, ratio in slowed.items():
        if ratio >= OFTEN_RATIO:
            yield say("samples.slowed", reason=reason_told(reason), share=100 * ratio)


def _rank_parts(names: dict[str, Series]) -> Iterator[str]:
    if busy := names.get("cpu_cores"):
        yield say("samples.cores", p50=busy.p50, max=busy.max)
    if memory := names.get("memory_bytes"):
        yield say("samples.memory", max=memory.max / GIB)


def watch_json(record: RunRecord) -> dict[str, Any]:
    """The part of `show --json` that is about watching; sentences are left to people."""
    series = series_of(read_samples(RunDir(Path(record.path))), max_points=4)
    failed = record.final and record.state == "failed"
    return {
        "hang": record.hang,
        "asked": [msgspec.to_builtins(one) for one in record.asked] if not record.final else [],
        "samples": [
            {"of": one.of, "index": one.index, "name": one.name, "p50": one.p50, "max": one.max}
            for one in series
        ],
        "failure_kind": failure_kind(record) if failed else None,
        "what_to_try": what_to_try(record) if failed else (),
    }
