"""This machine for people: a line a GPU, how they are joined, the host, the findings."""

from __future__ import annotations

from collections.abc import Iterator

from app.commands.printing import print_some, printable, source_told
from app.commands.reading import print_columns
from app.commands.sweep_tables import print_sweep
from ringside.doctor import Finding
from ringside.environment_lint import Finding as Variable
from ringside.environment_lint import in_words
from ringside.machine import GpuState, Link, Machine, Process
from ringside.machine.host import FIRST_PORT, NUM_PORTS
from ringside.measurements import Sweep
from ringside.samples import reason_told
from ringside.words import percent, say
from ringside.words.retelling import retold

DASH = "–"
GIB = 2**30


def print_machine(machine: Machine) -> None:
    """Everything but the measured part."""
    print(printable(_headline(machine)))
    if machine.gpus:
        print()
        print_columns([tuple(map(say, GPU_COLUMNS)), *map(_gpu_row, machine.gpus)])
    if machine.links:
        print()
        print_columns(list(_matrix(machine)))
    print(f"\n{_host_line(machine)}")
    print_some(f"\n{say('machine.variables')}", list(map(_variable, machine.variables)))
    print_some(f"\n{say('machine.not_read')}", list(map(retold, machine.problems)))


def print_rest(machine: Machine, sweep: Sweep | None, findings: tuple[Finding, ...]) -> None:
    """What was measured, then what it all comes to."""
    if sweep is not None:
        print_sweep(sweep, machine)
    for finding in findings:
        _print_finding(finding)
    if not findings:
        print("\n" + say("machine.no_findings"))


def _variable(one: Variable) -> str:
    """`NCCL_P2P_DISABLE=1 (handicap): ...`."""
    level = say(f"variable.level_{one.level}")
    label = say("terminal.aside", text=f"{one.name}={one.value}", aside=level)
    return say("terminal.figure", label=label, value=in_words(one).about)


def _headline(machine: Machine) -> str:
    hardware = machine.hardware
    names = [gpu.name for gpu in machine.gpus]
    counts = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    memory = hardware.memory_bytes
    parts = [
        ", ".join(counts) or say("machine.no_gpu"),
        say("machine.cores", n=machine.num_cores),
        say("machine.memory", gib=memory / GIB) if memory else None,
        say("machine.driver", version=hardware.driver) if hardware.driver else None,
        f"torch {hardware.versions.get('torch', DASH)}",
        f"CUDA {machine.torch_cuda}" if machine.torch_cuda else None,
        f"NCCL {machine.nccl}" if machine.nccl else None,
        f"Python {hardware.python}",
    ]
    return say("terminal.comma").join(part for part in parts if part)


GPU_COLUMNS = (
    "machine.column_gpu", "machine.column_name", "column.memory_gib", "machine.column_load",
    "machine.column_power", "machine.column_temp", "machine.column_clock",
    "machine.column_held_by", "machine.column_pcie", "machine.column_from_host",
    "machine.column_nvlinks", "machine.column_numa", "machine.column_processes",
)  # fmt: skip
"""Keys of the words."""


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
    key = "machine.pcie_loaded" if gpu.is_pcie_loaded else "machine.pcie_at_rest"
    return say(key, now=now, most=most)


def _process(process: Process) -> str:
    memory = "" if process.memory_bytes is None else f" {process.memory_bytes / GIB:.1f} GiB"
    owner = "Ringside" if process.is_ours else (process.user or say("machine.link_unknown"))
    return say("terminal.aside", text=process.name or process.pid, aside=owner) + memory


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
    p2p = {True: "P2P", False: say("machine.no_p2p"), None: None}[link.p2p]
    return say("terminal.comma").join(part for part in (f"{kind}{number}", p2p) if part)


def _host_line(machine: Machine) -> str:
    threads = machine.omp_num_threads
    load = machine.load_average
    parts = [
        say("machine.load", load=load, n=machine.num_cores) if load is not None else None,
        f"OMP_NUM_THREADS {threads}" if threads is not None else say("machine.no_threads"),
        f"/dev/shm {_free(machine.shm_free_bytes, machine.shm_total_bytes)}",
        say("machine.disk", free=_free(machine.disk_free_bytes, None)),
        say("machine.ports", free=machine.free_ports, n=NUM_PORTS, first=FIRST_PORT),
    ]
    return say("machine.host", parts=say("terminal.comma").join(part for part in parts if part))


def _free(free: int | None, total: int | None) -> str:
    if free is None:
        return DASH
    if total is None:
        return say("machine.free", free=free / GIB)
    return say("machine.free_of", free=free / GIB, total=total / GIB)


def _print_finding(finding: Finding) -> None:
    severity = say(f"terminal.severity_{finding.severity}")
    sure = say(f"terminal.sure_{finding.confidence.replace(' ', '_')}")
    print("\n" + say("machine.finding", severity=severity, code=finding.code, sure=sure))
    print(f"  {printable(finding.sentence)}")
    for one in finding.evidence:
        told = say("terminal.figure", label=one.label, value=one.value)
        print(f"    {printable(told)} [{printable(source_told(one.source))}]")
    print("  " + say("terminal.next", sentence=printable(finding.next_step)))
    print("  " + say("machine.refuted", sentence=printable(finding.refutation)))
