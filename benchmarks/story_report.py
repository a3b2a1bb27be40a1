"""The tables of `benchmarks/story.py`: speed-ups and factors, verdicts, and what its bars say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import story_estimates
from story_cells import DATA_PARALLEL, ONE, TRANSPORTS, Cell, Line

from ringside.speedup import BASELINE

STORY_IMAGES = 480_000
STORY_FACTOR = 2.36
"""66 minutes an epoch became 28."""
FAST, LARGE, SLOW = "nvlink", 256, "sockets"
PLAIN = ("ddp", "ddp_bf16")
EFFICIENT = 0.95
IMPOSSIBLE = 1.05
"""Several devices do no more than each alone; the rest is noise of the clock."""
MET, MISSED, OPEN = "met", "missed", "not measured"


class Bar(NamedTuple):
    """A promise, whether it is kept, and the figures that say so."""

    name: str
    verdict: str
    detail: str


class Factors(NamedTuple):
    """By how much the best set-up of a transport and batch is faster than the worst.

    `total` = `precision` x `communication`. `precision` is what one device alone gains by the
    arithmetic of the best set-up (16 bit, compilation) over that of the worst, and `communication`
    the ratio of their efficiencies.
    """

    batch: int
    best: str
    worst: str
    total: float
    precision: float
    communication: float


class Table:
    """The lines of a visit, with what one line says only beside another."""

    def __init__(self, lines: Mapping[Cell, Line]) -> None:
        self.lines = dict(sorted(lines.items(), key=lambda pair: _order(pair[1])))

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines.values())

    def alone(self, line: Line, *, plain: bool = False) -> Line | None:
        """One device at the same batch and the same precision; `plain`: in fp32, not compiled."""
        precision, compiled = ("fp32", False) if plain else (line.precision, line.compiled)
        return self.lines.get(Cell(ONE, line.batch, BASELINE, precision, compiled))

    def speedup(self, line: Line) -> float | None:
        """Images/s against one device at equal precision and equal per-device batch."""
        return None if line.preset == BASELINE else _ratio(line, self.alone(line))

    def counts(self, line: Line) -> bool:
        """Whether its speed-up is known, and both sides of it are steady."""
        alone = self.alone(line)
        return bool(self.speedup(line) and line.is_steady and alone and alone.is_steady)

    def doubts(self) -> Iterator[str]:
        """What cannot be: such a table was not measured under equal conditions."""
        for line in self:
            efficiency = self.efficiency(line)
            if efficiency and efficiency > IMPOSSIBLE:
                yield (
                    f"{line.cell.name}: {efficiency:.0%} of what as many devices alone would do; "
                    "the two were not measured under equal conditions."
                )

    def efficiency(self, line: Line) -> float | None:
        """Speed-up a device."""
        found = self.speedup(line)
        return None if found is None else found / line.num_devices

    def precision_factor(self, line: Line) -> float | None:
        """What one device gains by this precision, and by compiling, over fp32."""
        return _ratio(self.alone(line), self.alone(line, plain=True))

    def factors(self, transport: str) -> Iterator[Factors]:
        """Best against worst, nn.DataParallel left out, at each batch with two steady set-ups."""
        known = [
            line
            for line in self
            if line.transport == transport and line.preset != DATA_PARALLEL and self.counts(line)
        ]
        for batch in dict.fromkeys(line.batch for line in known):
            here = [line for line in known if line.batch == batch]
            best = max(here, key=lambda line: line.samples_per_s or 0)
            worst = min(here, key=lambda line: line.samples_per_s or 0)
            total, precision = _ratio(best, worst), _ratio(self.alone(best), self.alone(worst))
            if best is not worst and total and precision:
                yield Factors(
                    batch, best.preset, worst.preset, total, precision, total / precision
                )  # fmt: skip


def bars(table: Table, wanted: Iterable[Cell]) -> list[Bar]:
    """The verdicts of all wanted cells, DDP over NVLink, the story's factor, the predictions."""
    fast = [_efficient(table, preset) for preset in PLAIN]
    return [_verdicts(table, list(wanted)), *fast, _factor(table), *_predictions(table)]


def _predictions(table: Table) -> Iterator[Bar]:
    for name, verdict, detail in story_estimates.results(list(table)):
        yield Bar(name, verdict if verdict in (MET, MISSED) else OPEN, detail)


def _verdicts(table: Table, wanted: list[Cell]) -> Bar:
    name = "the verdict is right in every cell"
    judged = [table.lines[cell].is_right if cell in table.lines else None for cell in wanted]
    wrong, open_ = judged.count(False), judged.count(None)
    verdict = MISSED if wrong else OPEN if open_ or not judged else MET
    return Bar(name, verdict, f"{judged.count(True)} right, {wrong} wrong, {open_} not judged")


def _efficient(table: Table, preset: str) -> Bar:
    name = f"{preset} over NVLink at {LARGE} images a GPU: efficiency of {EFFICIENT:.0%} or more"
    found = next((one for one in table if one.cell[:3] == (FAST, LARGE, preset)), None)
    ratio = table.efficiency(found) if found else None
    if ratio is None or found is None or not table.counts(found):
        return Bar(name, OPEN, "–")
    return Bar(name, MET if ratio >= EFFICIENT else MISSED, f"{ratio:.1%}")


def _factor(table: Table) -> Bar:
    name = f"over sockets the best is {STORY_FACTOR}x the worst at one batch, or more"
    largest = max(table.factors(SLOW), key=lambda one: one.total, default=None)
    if largest is None:
        return Bar(name, OPEN, "–")
    detail = f"{largest.total:.2f}x at {largest.batch} images a GPU"
    return Bar(name, MET if largest.total >= STORY_FACTOR else MISSED, detail)


def markdown(table: Table, wanted: Iterable[Cell], head: str) -> str:
    """All of it as a file of results."""
    wanted = list(wanted)
    absent = [cell.name for cell in wanted if cell not in table.lines]
    parts = [head, _speeds(table), _verdict_table(table), _factor_table(table)]
    parts += [_bar_table(bars(table, wanted)), story_estimates.markdown(list(table))]
    parts += [f"{line.cell.name}: {line.problem}" for line in table if line.problem]
    parts += table.doubts()
    if absent:
        parts.append(f"Not measured yet: {', '.join(absent)}.")
    return "\n\n".join(filter(None, parts)) + "\n"


def _speeds(table: Table) -> str:
    rows = [
        "| transport | images a device | preset | precision | step ms | spread | windows "
        "| images/s | epoch of 480,000 | speed-up | efficiency | precision factor "
        "| memory GiB | estimated | sent a step MB | exposed | estimated ms | error |",
        "|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in table:
        rate, middle, guess = line.samples_per_s, line.median_ms, line.predicted_ms
        cells = [
            line.transport, str(line.batch), line.preset, _precision(line), _text(middle, "{:.2f}"),
            _text(line.spread_ratio, "{:.1%}"), str(len(line.step_ms)), _text(rate, "{:,.0f}"),
            _text(STORY_IMAGES / rate / 60 if rate else None, "{:.1f} min"),
            _text(table.speedup(line), "{:.2f}x"), _text(table.efficiency(line), "{:.0%}"),
            _text(table.precision_factor(line), "{:.2f}x"),
            *(_text(_gib(n), "{:.2f}") for n in (line.memory_bytes, line.predicted_memory_bytes)),
            _text(line.wire_bytes and line.wire_bytes / 1e6, "{:.1f}"),
            _text(line.exposed_ratio, "{:.0%}"), _text(guess, "{:.2f}"),
            _text(guess / middle - 1 if guess and middle else None, "{:+.1%}"),
        ]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _verdict_table(table: Table) -> str:
    rows = [
        "| transport | images a device | preset | precision | verdict | share | expected "
        "| the expectation's rule | | also found |",
        "|---|---:|---|---|---|---:|---|---|---|---|",
    ]
    words = {True: "right", False: "WRONG", None: "not judged"}
    for line in table:
        cells = [
            line.transport, str(line.batch), line.preset, _precision(line),
            f"{line.cause} ({line.code})" if line.cause else "–",
            _text(line.share_ratio, "{:.0%}"), " or ".join(line.expected) or "–", line.rule,
            words[line.is_right] if line.is_steady else "too noisy", ", ".join(line.others),
        ]  # fmt: skip
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _factor_table(table: Table) -> str:
    rows = [
        f"| {transport} | {one.batch} | {one.best} | {one.worst} | {one.total:.2f}x "
        f"| {one.precision:.2f}x | {one.communication:.2f}x |"
        for transport in TRANSPORTS
        for one in table.factors(transport)
    ]
    head = [
        "| transport | images a device | best | worst | best / worst | of it precision "
        "| communication |",
        "|---|---:|---|---|---:|---:|---:|",
    ]
    return "\n".join(head + rows) if rows else ""


def _bar_table(found: list[Bar]) -> str:
    rows = [f"| {bar.name} | {bar.detail} | {bar.verdict} |" for bar in found]
    return "\n".join(["| bar | measured | |", "|---|---|---|", *rows])


def _order(line: Line) -> tuple[int, int, bool, str]:
    places = [ONE, *TRANSPORTS]
    return places.index(line.transport), line.batch, line.compiled, line.preset


def _precision(line: Line) -> str:
    return f"{line.precision}, compiled" if line.compiled else line.precision


def _ratio(line: Line | None, other: Line | None) -> float | None:
    if line is None or other is None or not line.samples_per_s or not other.samples_per_s:
        return None
    return line.samples_per_s / other.samples_per_s


def _gib(num_bytes: int | None) -> float | None:
    return num_bytes / 2**30 if num_bytes else None


def _text(value: float | None, form: str) -> str:
    return "–" if value is None else form.format(value)
