"""Predictions of steps and memory against fresh runs on this machine.

    python benchmarks/estimate.py --out /tmp/estimate --batches 64 256 --precision bf16 \\
        --transport nvlink shm socket

Measures a description for each batch, what processes cost each other without exchanging anything
(one launch), and for each transport a sweep and every preset (one launch,
five repeats in turns, no profiler, images on the device already). Whatever lies in --out is not
measured again, so that a visit may be cut short and go on; --only picks parts by name
(`description-64`, `crowd`, `sweep-shm`, `steps-shm`). Without --transport the machine is taken as
it is.

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
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from estimate_report import Row, Timed, print_report

from ringside import identity, yaml_text
from ringside.errors import RingsideError
from ringside.estimate import Calibration, Inputs, estimate
from ringside.estimate.calibration import calibrate_step
from ringside.hardware import Hardware, read_hardware
from ringside.launch.ladder import stop_ladder
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
RANKS = Path(__file__).with_name("estimate_ranks.py")

Kind = TypeVar("Kind")


def main() -> int:
    """Measure what is not there yet, then print the tables."""
    options = parse_arguments()
    hardware = read_hardware()
    options.out.mkdir(parents=True, exist_ok=True)
    bench = Benchmark(options, hardware)
    bench.measure()
    print_report(bench.head(), bench)
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

    def head(self) -> str:
        """The machine, the versions and the job."""
        options, hardware = self.options, self.hardware
        names = ", ".join(sorted({gpu.name for gpu in hardware.gpus})) or "CPU"
        return (
            f"{self.processes} x {names}, torch {hardware.versions.get('torch')}, "
            f"{options.model}, {options.image_size} px, {options.precision}, "
            f"{options.optimizer}, 5 repeats of {options.seconds} s in turns"
        )

    def measure(self) -> None:
        """All parts; one that fails is a sentence and does not stop the others."""
        for batch in self.options.batches:
            self._part(f"description-{batch}", partial(self._describe, batch))
        self._part("crowd", self._crowd)
        for transport in self.options.transport:
            self._part(f"sweep-{transport}", partial(self._sweep, transport))
            self._part(f"steps-{transport}", partial(self._time, transport))

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
        execute([*argv, str(self.options.seconds), *flags], run, environment, self.options.timeout)
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


def execute(argv: list[str], run: RunDir, environment: dict[str, str], timeout_s: float) -> None:
    """Wait for a launch; at its time limit it is ended with all that descends from it."""
    with run.console.open("wb") as console:
        child = subprocess.Popen(
            argv, env=environment, cwd=run.path, stdin=subprocess.DEVNULL, stdout=console,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    launcher = identity.of(child.pid)
    try:
        child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        say("The launch was ended at its time limit; what it had timed is kept.")
    finally:
        # Torch elastic gives ranks sessions of their own.
        if child.poll() is None or identity.run_processes(run.id):
            stop_ladder([launcher], run.id, step_s=1.0)
        child.wait()


def say(line: str) -> None:
    """Progress, apart from the report."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
