"""Predictions of steps and memory against fresh runs on this machine.

    python benchmarks/estimate.py --out /tmp/estimate --batches 64 256 --precision bf16 \\
        --transport nvlink shm socket

Measures a description for each batch, what processes cost each other without exchanging anything
(one launch), and for each transport a sweep and every preset (one launch,
five repeats in turns, no profiler, images on the device already). Whatever lies in --out is not
measured again, so that a visit may be cut short and go on; --only picks parts by name
(`description-64`, `crowd`, `sweep-shm`, `steps-shm`). Without --transport the machine is taken as it is.

A prediction counts where the spread of the repeats (half their range around the median) is below
half the bar. Three kinds: `replay`, calibrated by the first repeats of ddp and compared with its
others (3 %); `one knob`, calibrated by ddp and changed (5 % median); `one device`, from one
device's step, the crowd and the sweep (10 % median, 20 % worst).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ringside import yaml_text
from ringside.errors import RingsideError
from ringside.estimate import Calibration, Inputs, estimate
from ringside.estimate.calibration import calibrate_step
from ringside.hardware import Hardware, read_hardware
from ringside.launch.plan import launcher_argv, make_plan
from ringside.launch.probing import measure_description, measure_sweep
from ringside.measurements import Crowded, Description, Sweep
from ringside.measurements.crowd import with_crowd
from ringside.presets import accelerate_config
from ringside.request import RunRequest, resolve
from ringside.rundir import RunDir, write_atomic
from ringside.spec import RunSpec

TRANSPORTS: dict[str, dict[str, str]] = {
    "default": {},
    "nvlink": {},
    "shm": {"NCCL_P2P_DISABLE": "1"},
    "socket": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},
}
PRESETS = ("ddp", "ddp_tuned", "ddp_bf16_compress", "ddp_accum4", "local_sgd", "fsdp_bf16")
REFERENCE = "ddp"
CALIBRATING_REPEATS = 2
BARS = {"replay": 0.03, "one knob": 0.05, "one device": 0.10}
GAP_RATIO = 0.05
RANKS = Path(__file__).with_name("estimate_ranks.py")

Kind = TypeVar("Kind")


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


def main() -> int:
    """Measure what is not there yet, then print the tables."""
    options = parse_arguments()
    hardware = read_hardware()
    options.out.mkdir(parents=True, exist_ok=True)
    bench = Benchmark(options, hardware)
    bench.measure()
    print_report(bench)
    return 0


def parse_arguments() -> argparse.Namespace:
    """Flags of this benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder of the measurements")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--precision", default="bf16", choices=["no", "fp16", "bf16"])
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adamw"])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256], help="per device")
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--presets", nargs="+", default=list(PRESETS))
    parser.add_argument("--transport", nargs="+", default=["default"], choices=list(TRANSPORTS))
    parser.add_argument("--seconds", type=float, default=0.6, help="of each repeat")
    parser.add_argument("--probe-seconds", type=float, default=2.0, help="of each description")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for a launch")
    parser.add_argument("--only", nargs="*", default=None, help="names of parts to measure")
    return parser.parse_args()


class Benchmark:
    """The parts of one visit, each kept in a file of its own."""

    def __init__(self, options: argparse.Namespace, hardware: Hardware) -> None:
        self.options, self.hardware = options, hardware
        self.processes = options.processes or min(2, hardware.num_devices())

    def measure(self) -> None:
        """All parts; one that fails is a sentence and does not stop the others."""
        for batch in self.options.batches:
            self._part(f"description-{batch}", lambda b=batch: self._describe(b))
        self._part("crowd", self._crowd)
        for transport in self.options.transport:
            self._part(f"sweep-{transport}", lambda t=transport: self._sweep(t))
            self._part(f"steps-{transport}", lambda t=transport: self._time(t))

    def _part(self, name: str, make: Callable[[], object]) -> None:
        path, only = self._path(name), self.options.only
        if path.exists() or (only is not None and not any(name.startswith(o) for o in only)):
            return
        begin = time.monotonic()
        try:
            write_atomic(path, msgspec.json.encode(make()))
        except (RingsideError, OSError, subprocess.SubprocessError) as error:
            say(f"{name}: {error}")
            return
        say(f"{name}: {time.monotonic() - begin:.0f} s")

    def _path(self, name: str) -> Path:
        return Path(self.options.out) / f"{name}.json"

    def _describe(self, batch: int) -> Description:
        spec = self.spec("single", batch)
        return measure_description(
            spec, self.hardware, seconds=self.options.probe_seconds, timeout_s=self.options.timeout
        )

    def _crowd(self) -> list[Timed]:
        """Plain DDP without reduction at every batch: what processes cost each other."""
        specs = [self.spec(REFERENCE, batch) for batch in self.options.batches]
        return self._launched(specs, {}, "--without-reduction")

    def _sweep(self, transport: str) -> Sweep:
        environment = TRANSPORTS[transport]
        return measure_sweep(
            self.hardware, self.processes, environment=environment, seconds=4.0, trials=False,
            timeout_s=self.options.timeout,
        )  # fmt: skip

    def _time(self, transport: str) -> list[Timed]:
        specs = [
            self.spec(preset, batch)
            for batch in self.options.batches
            for preset in sorted(self.options.presets, key=lambda name: name.startswith("fsdp"))
        ]
        return self._launched(specs, TRANSPORTS[transport])

    def _launched(
        self, specs: list[RunSpec], variables: dict[str, str], *flags: str
    ) -> list[Timed]:
        with tempfile.TemporaryDirectory(prefix="ringside-estimate-") as name:
            return self._launch(specs, RunDir(Path(name)), variables, flags)

    def _launch(
        self, specs: list[RunSpec], run: RunDir, variables: dict[str, str], flags: tuple[str, ...]
    ) -> list[Timed]:
        given, out = run.path / "specs.json", run.path / "steps.json"
        run.logs.mkdir()
        given.write_bytes(msgspec.json.encode(specs))
        first = next(spec for spec in specs if spec.strategy != "fsdp")
        config = accelerate_config(first.accelerate, self.processes)
        write_atomic(run.accelerate, yaml_text.dump(config).encode())
        argv = [*launcher_argv(first, run), str(RANKS), str(given), str(out)]
        environment = os.environ | make_plan(first, run).environment | variables
        with run.console.open("wb") as console:
            try:
                subprocess.run(
                    [*argv, str(self.options.seconds), *flags], env=environment, cwd=run.path,
                    stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                    timeout=self.options.timeout, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                say("The launch was ended at its time limit; what it had timed is kept.")
        found = run.read(out, list[Timed])
        if found is None:
            tail = run.console.read_text(errors="replace").splitlines()[-15:]
            raise RingsideError("Nothing was timed; the launch said:\n" + "\n".join(tail))
        return found

    def spec(self, preset: str, batch: int) -> RunSpec:
        """A preset at this batch per device, in the precision of the benchmark."""
        options = self.options
        request = RunRequest(
            preset=preset,
            data=options.data,
            model=options.model,
            image_size=options.image_size,
            processes=1 if preset == "single" else self.processes,
            batch=batch * (1 if preset == "single" else self.processes),
            overrides={"mixed_precision": options.precision, "optimizer": options.optimizer},
        )
        return resolve(request, self.hardware)

    def read(self, name: str, kind: type[Kind]) -> Kind | None:
        """A part that was measured in this visit or an earlier one."""
        return RunDir(Path(self.options.out)).read(self._path(name), kind)

    def inputs(self, transport: str, spec: RunSpec) -> Inputs:
        """What a prediction may know: description, crowd and sweep, of launches of their own."""
        description = self.read(f"description-{spec.micro_batch}", Description)
        for timed in self.read("crowd", list[Timed]) or []:
            if description and timed.step_ms and timed.spec.micro_batch == spec.micro_batch:
                crowded = Crowded(
                    num_processes=timed.spec.num_processes,
                    batch=spec.micro_batch,
                    step_us=tuple(1000 * ms for ms in timed.step_ms),
                )
                description = with_crowd(description, crowded, description.t)
        return Inputs(description=description, sweep=self.read(f"sweep-{transport}", Sweep))

    def cases(self) -> Iterator[tuple[str, Timed]]:
        """(transport, set-up) of all that was timed."""
        for transport in self.options.transport:
            for timed in self.read(f"steps-{transport}", list[Timed]) or []:
                yield transport, timed

    def rows(self) -> Iterator[Row]:
        """Every prediction that has a measurement."""
        for transport, timed in self.cases():
            if timed.step_ms:
                yield from self._rows(transport, timed)

    def _rows(self, transport: str, timed: Timed) -> Iterator[Row]:
        spec, inputs = timed.spec, self.inputs(transport, timed.spec)
        yield from self._row(transport, timed, timed.step_ms, "one device", inputs)
        calibration = self._calibration(transport, spec.micro_batch)
        if calibration is None:
            return
        calibrated = Inputs(inputs.description, inputs.sweep, calibration=calibration)
        if spec.preset == REFERENCE:
            later = timed.step_ms[CALIBRATING_REPEATS:]
            yield from self._row(transport, timed, later, "replay", calibrated)
        else:
            yield from self._row(transport, timed, timed.step_ms, "one knob", calibrated)

    def _row(
        self, transport: str, timed: Timed, repeats: tuple[float, ...], kind: str, inputs: Inputs
    ) -> Iterator[Row]:
        found = estimate(timed.spec, inputs)
        if found.step_ms is None:
            say(f"{transport} {timed.spec.preset}: {' '.join(found.missing)}")
            return
        yield Row(
            transport=transport,
            batch=timed.spec.micro_batch,
            preset=timed.spec.preset,
            kind=kind,
            measured_ms=statistics.median(repeats),
            spread_ratio=(max(repeats) - min(repeats)) / 2 / statistics.median(repeats),
            predicted_ms=found.step_ms,
            exposed_ratio=found.exposed_ratio or 0.0,
        )

    def _calibration(self, transport: str, batch: int) -> Calibration | None:
        """By the first repeats of ddp at this batch."""
        for where, timed in self.cases():
            spec = timed.spec
            if (where, spec.micro_batch, spec.preset) == (transport, batch, REFERENCE):
                if not timed.step_ms:
                    return None
                inputs = self.inputs(transport, spec)
                step_us = 1000 * statistics.median(timed.step_ms[:CALIBRATING_REPEATS])
                return calibrate_step(
                    spec, step_us, inputs.description, inputs.sweep, f"{transport} {REFERENCE}"
                )
        return None


def print_report(bench: Benchmark) -> None:
    """Every prediction, then what the bars say, the order of presets, and memory."""
    options, hardware = bench.options, bench.hardware
    names = ", ".join(sorted({gpu.name for gpu in hardware.gpus})) or "CPU"
    print(
        f"{bench.processes} x {names}, torch {hardware.versions.get('torch')}, {options.model}, "
        f"{options.image_size} px, {options.precision}, {options.optimizer}, 5 repeats of "
        f"{options.seconds} s in turns\n"
    )
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


def print_order(rows: list[Row], bench: Benchmark) -> None:
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


def print_memory(bench: Benchmark) -> None:
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


def say(line: str) -> None:
    """Progress, apart from the report."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
