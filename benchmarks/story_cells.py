"""The cells of `benchmarks/story.py`: the request of each, and the file of what came of it."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ringside.hardware import Hardware
from ringside.request import RunRequest, resolve
from ringside.spec import RunSpec
from ringside.speedup import BASELINE, baseline_of

ONE = "one"
TRANSPORTS: dict[str, dict[str, str]] = {
    "nvlink": {},
    "shm": {"NCCL_P2P_DISABLE": "1"},
    "sockets": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},
    "gloo": {},
}
PRESETS = (
    "ddp", "ddp_tuned", "ddp_accum4", "ddp_accum8", "ddp_bf16", "ddp_bf16_compress",
    "ddp_bf16_compiled", "fsdp", "fsdp_bf16", "data_parallel",
)  # fmt: skip
NOT_ON_CPU = ("data_parallel", "ddp_bf16_compiled")
DATA_PARALLEL, REFERENCE = "data_parallel", "ddp"
TIMED_EPOCHS = 2
# A step of nn.DataParallel can take more than a second, and its verdict needs no baseline.
DATA_PARALLEL_EPOCHS, DATA_PARALLEL_STEPS = 1, 8
TRACED_STEPS, PROFILE_STEPS = 2, 3
MIN_WINDOWS = 5
STEADY_RATIO = 0.10
"""Half of the middle half of the windows, as a share of their median, up to which a cell counts:
the band from which on the doctor names a cause. One hiccup does not move it."""


class Cell(NamedTuple):
    """One set-up. `transport` is `one` for a single device, whose bytes travel nowhere."""

    transport: str
    batch: int
    preset: str
    precision: str
    compiled: bool

    @property
    def name(self) -> str:
        """As --only and the files call it."""
        parts = [self.transport, str(self.batch), self.preset]
        if self.preset == BASELINE:
            parts += [self.precision] + ["compiled"] * self.compiled
        return "-".join(parts)


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """All that the table says of a cell; a line of `cells.jsonl`.

    `step_ms`: optimizer steps of each window, slowest rank. `wire_bytes`: what a rank sends per
    optimizer step. `predicted_ms`: from one device, what several cost each other, and the sweep;
    `replayed_ms`: by a replay that the reference of another launch has calibrated. `expected`:
    causes that count as right, `rule`: why. None is not measured.
    """

    transport: str
    batch: int
    preset: str
    precision: str
    compiled: bool
    num_devices: int
    device_name: str = ""
    global_batch: int
    step_ms: tuple[float, ...] = ()
    memory_bytes: int | None = None
    wire_bytes: float | None = None
    exposed_ratio: float | None = None
    predicted_ms: float | None = None
    replayed_ms: float | None = None
    predicted_memory_bytes: int | None = None
    not_predicted: str | None = None
    cause: str | None = None
    code: str | None = None
    share_ratio: float | None = None
    sentence: str | None = None
    others: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    rule: str = ""
    problem: str | None = None
    run: str | None = None
    versions: dict[str, str] = {}

    @property
    def cell(self) -> Cell:
        """Its place in the table."""
        return Cell(self.transport, self.batch, self.preset, self.precision, self.compiled)

    @property
    def median_ms(self) -> float | None:
        """None where too few windows were timed."""
        return statistics.median(self.step_ms) if len(self.step_ms) >= MIN_WINDOWS else None

    @property
    def spread_ratio(self) -> float | None:
        """Half the range of the windows around their median."""
        middle = self.median_ms
        return (max(self.step_ms) - min(self.step_ms)) / 2 / middle if middle else None

    @property
    def is_steady(self) -> bool:
        """Whether the windows agree so well that something can be said of this set-up."""
        middle = self.median_ms
        if not middle:
            return False
        first, _, third = statistics.quantiles(self.step_ms, n=4, method="inclusive")
        return (third - first) / 2 / middle <= STEADY_RATIO

    @property
    def samples_per_s(self) -> float | None:
        """Images of all devices."""
        middle = self.median_ms
        return 1000 * self.global_batch / middle if middle else None

    @property
    def is_right(self) -> bool | None:
        """Whether the verdict is an expected one; None where either is missing, or in noise."""
        if not (self.cause and self.expected and self.is_steady):
            return None
        return self.cause in self.expected


class Job(NamedTuple):
    """What all cells have in common; `micro_steps`: per-device batches in an epoch, by batch."""

    model: str
    image_size: int
    processes: int
    micro_steps: dict[int, int]


def spec_of_preset(job: Job, hardware: Hardware, transport: str, batch: int, name: str) -> RunSpec:
    """The timed request of a preset that uses all devices; RingsideError where it cannot be."""
    num = job.processes
    steps, epochs = job.micro_steps[batch], TIMED_EPOCHS
    if name == DATA_PARALLEL:
        steps, epochs = DATA_PARALLEL_STEPS, DATA_PARALLEL_EPOCHS
    request = RunRequest(
        preset=name, model=job.model, image_size=job.image_size, processes=num, batch=batch * num,
        data=f"synthetic:{num * batch * steps}", epochs=epochs, beside=True,
        # Loader workers would only read the few pictures of the evaluation.
        overrides={"num_workers": "0"},
    )  # fmt: skip
    spec = resolve(request, hardware)
    environment = spec.environment | TRANSPORTS[transport]
    return named(msgspec.structs.replace(spec, environment=environment), transport)


def named(spec: RunSpec, transport: str) -> RunSpec:
    """The request with its cell's name, by which its run is found again."""
    return msgspec.structs.replace(spec, request_id=cell_of(spec, transport).name)


def cell_of(spec: RunSpec, transport: str) -> Cell:
    """The place of a request in the table."""
    precision = spec.accelerate.mixed_precision
    name = "fp32" if precision == "no" else precision
    return Cell(transport, spec.micro_batch, spec.preset, name, spec.training.compile)


def all_specs(
    job: Job, hardware: Hardware, transports: list[str], presets: list[str]
) -> dict[Cell, RunSpec]:
    """Every cell with its request: first one device at each precision that a preset needs."""
    several: dict[Cell, RunSpec] = {}
    for transport in transports:
        for batch in job.micro_steps:
            for name in presets:
                spec = spec_of_preset(job, hardware, transport, batch, name)
                several[cell_of(spec, transport)] = spec
    alone: dict[Cell, RunSpec] = {}
    for spec in several.values():
        # Its data are others, and what it is compared with is the baseline of `ddp`.
        if spec.preset != DATA_PARALLEL:
            base = baseline_of(spec)
            alone.setdefault(cell_of(base, ONE), named(base, ONE))
    return dict(sorted(alone.items(), key=_baseline_order)) | several


def traced_spec(spec: RunSpec) -> RunSpec:
    """The same set-up for a few steps and a profile, in a launch that times nothing."""
    profile = f"{TRACED_STEPS * spec.global_batch}"
    data = msgspec.structs.replace(spec.data, profile=profile)
    return msgspec.structs.replace(spec, data=data, epochs=1, profile_steps=PROFILE_STEPS)


def num_steps(spec: RunSpec) -> int:
    """Optimizer steps of the whole run."""
    return spec.epochs * (int(spec.data.profile or 0) // spec.global_batch)


class Lines:
    """`cells.jsonl`: a line a finished cell, appended with one write; the last one counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, line: Line) -> None:
        """A line is there as a whole or not at all, whatever ends this process."""
        # A line that a full disk has torn does not take this one with it.
        is_torn = self.path.exists() and not self.path.read_bytes().endswith(b"\n")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, b"\n" * is_torn + msgspec.json.encode(line) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> dict[Cell, Line]:
        """The newest line of every cell; one that cannot be read is left out."""
        return {line.cell: line for line in self._all()}

    def _all(self) -> Iterator[Line]:
        data = self.path.read_bytes() if self.path.exists() else b""
        for text in data.splitlines():
            try:
                yield msgspec.json.decode(text, type=Line)
            except msgspec.DecodeError:
                continue


def _baseline_order(pair: tuple[Cell, RunSpec]) -> tuple[int, bool, str]:
    cell = pair[0]
    return cell.batch, cell.compiled, cell.precision != "fp32"
