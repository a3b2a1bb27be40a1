"""This machine for people: a line a GPU, how they are joined, the host, the sweep, the findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from app.commands.machine import healthy
from app.commands.printing import print_some, printable
from app.commands.reading import print_columns
from ringside.doctor import Finding
from ringside.environment_lint import in_words
from ringside.machine import GpuState, Link, Machine, Process
from ringside.machine.host import FIRST_PORT, NUM_PORTS
from ringside.measurements import Series, Sweep
from ringside.samples import reason_told
from ringside.words import percent, say

if TYPE_CHECKING:
    from ringside.measurements.bandwidths import Bandwidth

DASH = "–"
GIB = 2**30
STANDINGS = {
    "above": "machine.standing_above",
    "healthy": "machine.standing_healthy",
    "below": "machine.standing_below",
    "far below": "machine.standing_far",
}


def print_machine(machine: Machine) -> None:
    """Everything but the measured part."""
    print(printable(_headline(machine)))
    if machine.gpus:
        print()
        print_columns([GPU_COLUMNS, *map(_gpu_row, machine.gpus)])
    if machine.links:
        print()
        print_columns(list(_matrix(machine)))
    print(f"\n{_host_line(machine)}")
    print_some(
        "\nvariables that are set",
        [
            f"{one.name}={one.value} ({one.level}): {in_words(one).about}"
            for one in machine.variables
        ],
    )
    print_some("\nnot read", list(machine.problems))


def print_rest(machine: Machine, sweep: Sweep | None, findings: tuple[Finding, ...]) -> None:
    """What was measured, then what it all comes to."""
    if sweep is not None:
        _print_sweep(sweep, machine)
    for finding in findings:
        _print_finding(finding)
    if not findings:
        print("\nNothing was found on this machine that holds a run back.")


def _headline(machine: Machine) -> str:
    hardware = machine.hardware
    names = [gpu.name for gpu in machine.gpus]
    counts = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    memory = hardware.memory_bytes
    parts = [
        ", ".join(counts) or "no GPU",
        f"{machine.num_cores} cores",
        f"{memory / GIB:.0f} GiB memory" if memory else None,
        f"driver {hardware.driver}" if hardware.driver else None,
        f"torch {hardware.versions.get('torch', DASH)}",
        f"CUDA {machine.torch_cuda}" if machine.torch_cuda else None,
        f"NCCL {machine.nccl}" if machine.nccl else None,
        f"Python {hardware.python}",
    ]
    return ", ".join(part for part in parts if part)


GPU_COLUMNS = (
    "GPU", "name", "memory GiB", "load", "power W", "temp", "clock MHz", "held by", "PCIe",
    "from host", "NVLinks", "NUMA", "processes",
)  # fmt: skip


def _gpu_row(gpu: GpuState) -> list[str]:
    used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
    return [
        str(gpu.index),
        gpu.name,
        _of(None if used is None else used / GIB, None if total is None else total / GIB, ".1f"),
        DASH if gpu.utilisation_ratio is None else percent(gpu.utilisation_ratio),
        _of(gpu.power_w, gpu.power_limit_w, ".0f"),
        DASH if gpu.temperature_c is None else f"{gpu.temperature_c:.0f} °C",
        _of(gpu.sm_clock_mhz, gpu.max_sm_clock_mhz, "d"),
        ", ".join(map(reason_told, gpu.throttle_reasons)) or DASH,
        _pcie(gpu),
        DASH if gpu.copy_bytes_per_s is None else f"{gpu.copy_bytes_per_s / 1e9:.1f} GB/s",
        DASH if gpu.num_nvlinks is None else str(gpu.num_nvlinks),
        DASH if gpu.numa_node is None else str(gpu.numa_node),
        printable("; ".join(map(_process, gpu.processes))) or DASH,
    ]


def _of(value: float | None, most: float | None, form: str) -> str:
    """`now/most`, or a dash."""
    parts = [DASH if one is None else f"{one:{form}}" for one in (value, most)]
    return DASH if value is None and most is None else "/".join(parts)


def _pcie(gpu: GpuState) -> str:
    now = f"{gpu.pcie_generation or DASH} x{gpu.pcie_width or DASH}"
    most = f"{gpu.max_pcie_generation or DASH} x{gpu.max_pcie_width or DASH}"
    if now == most or DASH in now:
        return now if DASH not in now else DASH
    return f"{now} of {most}{'' if gpu.is_pcie_loaded else ', at rest'}"


def _process(process: Process) -> str:
    memory = "" if process.memory_bytes is None else f" {process.memory_bytes / GIB:.1f} GiB"
    owner = "Ringside" if process.is_ours else (process.user or "unknown")
    return f"{process.name or process.pid} ({owner}){memory}"


def _matrix(machine: Machine) -> Iterator[list[str]]:
    """As `nvidia-smi topo -m`, in words."""
    indices = [gpu.index for gpu in machine.gpus]
    yield ["GPU", *map(str, indices)]
    links = {frozenset((link.a, link.b)): link for link in machine.links}
    for one in indices:
        cells = (links.get(frozenset((one, other))) for other in indices)
        yield [str(one), *("" if cell is None else _link(cell) for cell in cells)]


def _link(link: Link) -> str:
    kind = say(f"machine.link_{link.kind}")
    number = f" x{link.num_nvlinks}" if link.num_nvlinks else ""
    p2p = {True: ", P2P", False: f", {say('machine.no_p2p')}", None: ""}[link.p2p]
    return f"{kind}{number}{p2p}"


def _host_line(machine: Machine) -> str:
    threads = machine.omp_num_threads
    load = machine.load_average
    parts = [
        f"load {load:.1f} on {machine.num_cores} cores" if load is not None else None,
        f"OMP_NUM_THREADS {threads}" if threads is not None else "OMP_NUM_THREADS not set",
        f"/dev/shm {_free(machine.shm_free_bytes, machine.shm_total_bytes)}",
        f"disk of the runs {_free(machine.disk_free_bytes, None)}",
        f"{machine.free_ports} of {NUM_PORTS} ports free from {FIRST_PORT} on",
    ]
    return "Host: " + ", ".join(part for part in parts if part)


def _free(free: int | None, total: int | None) -> str:
    if free is None:
        return DASH
    of = "" if total is None else f" of {total / GIB:.1f}"
    return f"{free / GIB:.1f}{of} GiB free"


def _print_sweep(sweep: Sweep, machine: Machine) -> None:
    """The first plain series in full, the others in one table, then what sums them up."""
    plain = [series for series in sweep.series if not series.environment]
    print(
        f"\nBetween {sweep.num_ranks} ranks: sizes of the whole array; algbw = size / time; busbw: "
        "what the busiest link carries."
    )
    for series in plain[:1]:
        _print_series(series)
    if plain[1:]:
        print("\ntime and busbw of the others")
        print_columns(list(_side_by_side(plain[1:])))
    print("\nfitted to the sizes from 1 to 64 MiB: time = alpha + factor x size / busbw")
    print_columns(
        [_fitted(series, name) for series, name in zip(plain, _names(plain), strict=True)]
    )
    for series in plain:
        _print_standing(series, sweep, machine)
    _print_experiments(sweep)


def _print_series(series: Series) -> None:
    print(f"\n{_name(series)}, {series.transport or series.backend}")
    rates = _rates(series)
    rows = [["  size", "time", "p90", "algbw", "busbw"]]
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
    yield ["  size", *_names(all_series)]
    cells = [_cells(series) for series in all_series]
    for size in sorted(set().union(*cells)):
        yield [f"  {size_text(size)}", *(column.get(size, DASH) for column in cells)]


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
    alpha = DASH if alpha_us is None else f"{alpha_us:.0f} µs" if alpha_us >= 1 else "under 1 µs"
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
        f"{_name(series)} ({series.backend})" if is_gpu and series.backend != "nccl"
        else _name(series)
        for series in all_series
    ]  # fmt: skip


def _print_standing(series: Series, sweep: Sweep, machine: Machine) -> None:
    if series.operation != "all_reduce" or series.backend != "nccl":
        return
    found = healthy(series, sweep.device_name, machine)
    if found is None:
        print(f"{_name(series)}: {say('machine.no_yardstick')}")
        return
    low, high = found["low_bytes_per_s"] / 1e9, found["high_bytes_per_s"] / 1e9
    print(
        f"{_name(series)}: {_gb(found['busbw_bytes_per_s'])} at {size_text(found['num_bytes'])} is "
        f"{say(STANDINGS[found['standing']])}, {low:g} to {high:g} GB/s ({found['source']})"
    )


def _print_experiments(sweep: Sweep) -> None:
    from ringside.measurements.comparison import drift_ratio, trials

    lines = []
    for trial in trials(sweep):
        name = " ".join(f"{key}={value}" for key, value in trial.environment.items())
        ratios = ", ".join(f"{ratio:.2f}x at {size_text(n)}" for n, ratio in trial.ratios.items())
        way = f" over {trial.transport}" if trial.transport else ""
        lines.append(f"{name}: {trial.outcome} ({ratios}){way}")
    print_some("\nexperiments, all-reduce against the machine as it is", lines)
    if (drift := drift_ratio(sweep)) is not None:
        print(f"Two launches of the machine as it is differed by up to {percent(drift)}.")
    print_some("\nexperiments that did not start", list(sweep.failed))


def _print_finding(finding: Finding) -> None:
    print(f"\n{finding.severity}, {finding.code} (confidence {finding.confidence})")
    print(f"  {printable(finding.sentence)}")
    for one in finding.evidence:
        print(f"    {printable(f'{one.label}: {one.value}')} [{printable(one.source)}]")
    print(f"  Next: {printable(finding.next_step)}")
    print(f"  It is something else if: {printable(finding.refutation)}")


def size_text(num_bytes: int) -> str:
    """`16 KiB`, `27.3 MiB`."""
    if num_bytes < 2**20:
        return f"{num_bytes / 2**10:g} KiB"
    return f"{round(num_bytes / 2**20, 1):g} MiB"


def _ms(microseconds: float) -> str:
    return f"{microseconds / 1000:.3f} ms"


def _gb(bytes_per_s: float | None) -> str:
    return DASH if bytes_per_s is None else f"{bytes_per_s / 1e9:.2f} GB/s"
