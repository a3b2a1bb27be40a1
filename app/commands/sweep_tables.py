"""A sweep of collectives for people: times by size, how fast for these links, what variables do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from app.commands.machine import healthy
from app.commands.printing import print_some
from app.commands.reading import print_columns
from ringside.machine import Machine
from ringside.measurements import Series, Sweep
from ringside.words import say
from ringside.words.retelling import retold

if TYPE_CHECKING:
    from ringside.measurements.bandwidths import Bandwidth

DASH = "–"
STANDINGS = {
    "above": "machine.standing_above",
    "healthy": "machine.standing_healthy",
    "below": "machine.standing_below",
    "far below": "machine.standing_far",
}


def print_sweep(sweep: Sweep, machine: Machine) -> None:
    """The first plain series in full, the others in one table, then what sums them up."""
    plain = [series for series in sweep.series if not series.environment]
    print("\n" + say("machine.between", n=sweep.num_ranks))
    for series in plain[:1]:
        _print_series(series)
    if plain[1:]:
        print("\n" + say("machine.others"))
        print_columns(list(_side_by_side(plain[1:])))
    print("\n" + say("machine.fitted"))
    print_columns(
        [_fitted(series, name) for series, name in zip(plain, _names(plain), strict=True)]
    )
    for series in plain:
        _print_standing(series, sweep, machine)
    _print_experiments(sweep)


def _print_series(series: Series) -> None:
    way = series.transport or series.backend
    print("\n" + say("terminal.comma").join((_name(series), way)))
    rates = _rates(series)
    rows = [[_size_head(), say("column.time"), "p90", "algbw", "busbw"]]
    for point in series.points:
        row = rates.get(point.num_bytes)
        rows.append(
            [
                f"  {size_text(point.num_bytes)}",
                _ms(point.median_us),
                _ms(point.p90_us),
                _gb(row.algbw_bytes_per_s if row else None),
                _gb(row.busbw_bytes_per_s if row else None),
            ]
        )
    print_columns(rows)


def _side_by_side(all_series: Sequence[Series]) -> Iterator[list[str]]:
    yield [_size_head(), *_names(all_series)]
    cells = [_cells(series) for series in all_series]
    for size in sorted(set().union(*cells)):
        yield [f"  {size_text(size)}", *(column.get(size, DASH) for column in cells)]


def _size_head() -> str:
    return "  " + say("machine.size")


def _cells(series: Series) -> dict[int, str]:
    rates = _rates(series)
    return {
        point.num_bytes: f"{_ms(point.median_us)}  {_gb(row.busbw_bytes_per_s if row else None)}"
        for point in series.points
        for row in [rates.get(point.num_bytes)]
    }


def _fitted(series: Series, name: str) -> list[str]:
    from ringside.measurements.interpolation import summary

    alpha_us, busbw = summary(series) or (None, None)
    least = say("machine.under_one_us")
    alpha = DASH if alpha_us is None else f"{alpha_us:.0f} µs" if alpha_us >= 1 else least
    return [f"  {name}", f"alpha {alpha}", f"busbw {_gb(busbw)}"]


def _rates(series: Series) -> dict[int, Bandwidth]:
    from ringside.measurements.bandwidths import bandwidths

    return {row.num_bytes: row for row in bandwidths(series)}


def _name(series: Series) -> str:
    return f"{series.operation.replace('_', '-')} {series.dtype}"


def _names(all_series: Sequence[Series]) -> list[str]:
    """With the backend of what does not travel through NCCL beside what does."""
    is_gpu = any(series.backend == "nccl" for series in all_series)
    return [
        say("terminal.aside", text=_name(series), aside=series.backend)
        if is_gpu and series.backend != "nccl" else _name(series)
        for series in all_series
    ]  # fmt: skip


def _print_standing(series: Series, sweep: Sweep, machine: Machine) -> None:
    if series.operation != "all_reduce" or series.backend != "nccl":
        return
    found = healthy(series, sweep.device_name, machine)
    if found is None:
        print(say("terminal.figure", label=_name(series), value=say("machine.no_yardstick")))
        return
    low, high = found["low_bytes_per_s"] / 1e9, found["high_bytes_per_s"] / 1e9
    told = say(
        "machine.standing", series=_name(series), rate=_gb(found["busbw_bytes_per_s"]),
        size=size_text(found["num_bytes"]), standing=say(STANDINGS[found["standing"]]),
        low=low, high=high, source=found["source"],
    )  # fmt: skip
    print(told)


def _print_experiments(sweep: Sweep) -> None:
    from ringside.measurements.comparison import drift_ratio, trials

    lines = []
    for trial in trials(sweep):
        name = " ".join(f"{key}={value}" for key, value in trial.environment.items())
        ratios = say("terminal.comma").join(
            say("machine.ratio_at", ratio=ratio, size=size_text(n))
            for n, ratio in trial.ratios.items()
        )
        outcome = say(f"machine.outcome_{trial.outcome.replace(' ', '_')}")
        told = say("terminal.aside", text=outcome, aside=ratios)
        if trial.transport:
            told = say("machine.over", told=told, transport=trial.transport)
        lines.append(say("terminal.figure", label=name, value=told))
    print_some(f"\n{say('machine.experiments')}", lines)
    if (drift := drift_ratio(sweep)) is not None:
        print(say("machine.drift", ratio=drift))
    print_some(f"\n{say('machine.not_started')}", list(map(retold, sweep.failed)))


def size_text(num_bytes: int) -> str:
    """`16 KiB`, `27.3 MiB`."""
    if num_bytes < 2**20:
        return f"{num_bytes / 2**10:g} KiB"
    return f"{round(num_bytes / 2**20, 1):g} MiB"


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:.3f} ms"


def _gb(bytes_per_s: float | None) -> str:
    return DASH if bytes_per_s is None else f"{bytes_per_s / 1e9:.2f} GB/s"
