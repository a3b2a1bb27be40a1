"""What `benchmarks/estimate.py` measures, in parts that are each kept in a file of their own."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
from estimate_report import REPEATS, Timed

from app.commands.running import lines_of
from ringside import identity, yaml_text
from ringside.errors import RingsideError
from ringside.estimate.calibration import measured_step_us
from ringside.hardware import Hardware
from ringside.launch.crowd import measure_crowd
from ringside.launch.ladder import stop_ladder
from ringside.launch.local import start_run
from ringside.launch.plan import launcher_argv, make_plan
from ringside.launch.probing import measure_description, measure_sweep
from ringside.measurements import Crowded, Description, Sweep
from ringside.presets import accelerate_config
from ringside.request import RunRequest, resolve
from ringside.run import fold_run
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
RANKS = Path(__file__).with_name("estimate_ranks.py")

# Guesses for a plan; nothing else depends on them.
LAUNCH_S, SETUP_S, CROWD_S, SWEEP_S, RUN_S, WARM_RATIO = 15.0, 3.0, 4.0, 4.0, 30.0, 1.2
RUN_EPOCHS = 3

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Part:
    """A file of the visit: how long it may take, and what fills it."""

    name: str
    guess_s: float
    make: Callable[[], object]


class Parts:
    """The parts of one visit, the most needed first."""

    def __init__(self, options: argparse.Namespace, hardware: Hardware) -> None:
        self.options, self.hardware = options, hardware
        self.processes = options.processes or min(2, hardware.num_devices())

    def __iter__(self) -> Iterator[Part]:
        options = self.options
        profile_s = 2 * (WARM_RATIO * options.probe_seconds + SETUP_S)
        for batch in options.batches:
            guess_s = LAUNCH_S + 2 * profile_s
            yield Part(f"description-{batch}", guess_s, partial(self._describe, batch))
            guess_s = LAUNCH_S + SETUP_S + WARM_RATIO * CROWD_S
            yield Part(f"crowd-{batch}", guess_s, partial(self._crowd, batch))
        for transport in options.transport:
            yield Part(f"sweep-{transport}", LAUNCH_S + SWEEP_S, partial(self._sweep, transport))
            for batch in options.batches:
                where, presets = f"{transport}-{batch}", options.presets
                yield self._timed(f"steps-{where}", transport, batch, presets)
                if options.runs:
                    make = partial(self._run, transport, batch)
                    yield Part(f"run-{where}", LAUNCH_S + RUN_S, make)
                else:
                    yield self._timed(f"again-{where}", transport, batch, [REFERENCE])

    def _timed(self, name: str, transport: str, batch: int, presets: list[str]) -> Part:
        guess_s = LAUNCH_S + len(presets) * (SETUP_S + REPEATS * self.options.seconds)
        return Part(name, guess_s, partial(self._time, transport, batch, presets))

    def measure(self) -> None:
        """All that is wanted and not there; what fails is a sentence and stops nothing."""
        for part in self:
            if self.path(part.name).exists() or not self.is_wanted(part.name):
                continue
            begin = time.monotonic()
            try:
                write_atomic(self.path(part.name), msgspec.json.encode(part.make()))
            except (RingsideError, OSError, subprocess.SubprocessError) as error:
                say(f"{part.name}: {error}")
                continue
            say(f"{part.name}: {time.monotonic() - begin:.0f} s")

    def print_plan(self) -> None:
        """Every part with a guess of its time, and when it would be done."""
        print("| part | about s | done after s | |\n|---|---:|---:|---|")
        total_s = 0.0
        for part in self:
            is_there, is_wanted = self.path(part.name).exists(), self.is_wanted(part.name)
            total_s += 0.0 if is_there or not is_wanted else part.guess_s
            state = "there" if is_there else "" if is_wanted else "left out"
            print(f"| {part.name} | {part.guess_s:.0f} | {total_s:.0f} | {state} |")

    def is_wanted(self, name: str) -> bool:
        """Whether --only leaves this part in: it names beginnings."""
        only = self.options.only
        return only is None or any(name.startswith(one) for one in only)

    def path(self, name: str) -> Path:
        """The file of a part."""
        return Path(self.options.out) / f"{name}.json"

    def read(self, name: str, kind: type[Kind]) -> Kind | None:
        """A part that was measured in this visit or an earlier one."""
        return RunDir(Path(self.options.out)).read(self.path(name), kind)

    def spec(self, preset: str, batch: int, transport: str = "default", **fields: int) -> RunSpec:
        """A preset at this batch per device, in the precision of the benchmark."""
        options = self.options
        count = 1 if preset == "single" else self.processes
        request = RunRequest(
            preset=preset, data=options.data, model=options.model, image_size=options.image_size,
            processes=count, batch=batch * count, **fields,
            overrides={"mixed_precision": options.precision, "optimizer": options.optimizer},
        )  # fmt: skip
        spec = resolve(request, self.hardware)
        environment = spec.environment | TRANSPORTS[transport]
        return msgspec.structs.replace(spec, environment=environment)

    def _describe(self, batch: int) -> Description:
        options = self.options
        return measure_description(
            self.spec("single", batch), self.hardware,
            seconds=options.probe_seconds, timeout_s=options.timeout,
        )  # fmt: skip

    def _crowd(self, batch: int) -> Crowded:
        spec = self.spec(REFERENCE, batch)
        return measure_crowd(spec, seconds=CROWD_S, timeout_s=self.options.timeout)

    def _sweep(self, transport: str) -> Sweep:
        return measure_sweep(
            self.hardware, self.processes, environment=TRANSPORTS[transport], seconds=SWEEP_S,
            trials=False, timeout_s=self.options.timeout,
        )  # fmt: skip

    def _run(self, transport: str, batch: int) -> Timed:
        """A whole run as a user starts it; its step without waiting for images."""
        spec = self.spec(REFERENCE, batch, transport, epochs=RUN_EPOCHS)
        run = start_run(spec, self.hardware, Path(self.options.out) / "runs")
        for line in lines_of(run):
            say(line)
        record = fold_run(run)
        step_us = measured_step_us(record)
        if step_us is None:
            raise RingsideError(f"{record.name} ended as {record.state} and timed no step.")
        return Timed(spec=spec, step_ms=(step_us / 1000,))

    def _time(self, transport: str, batch: int, presets: list[str]) -> list[Timed]:
        # Strategies of one kind share a process group's settings, so they come one after another.
        names = sorted(presets, key=lambda name: name.startswith("fsdp"))
        specs = [self.spec(preset, batch, transport) for preset in names]
        with tempfile.TemporaryDirectory(prefix="ringside-estimate-") as name:
            return self._launch(specs, RunDir(Path(name)))

    def _launch(self, specs: list[RunSpec], run: RunDir) -> list[Timed]:
        options = self.options
        given, out = run.path / "specs.json", run.path / "steps.json"
        run.logs.mkdir()
        given.write_bytes(msgspec.json.encode(specs))
        first = specs[0]
        config = accelerate_config(first.accelerate, self.processes)
        write_atomic(run.accelerate, yaml_text.dump(config).encode())
        argv = [*launcher_argv(first, run), str(RANKS), str(given), str(out), str(options.seconds)]
        environment = os.environ | make_plan(first, run).environment
        # Ranks do not look for modules beside their script by themselves.
        paths = [str(RANKS.parent), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        execute(argv, run, environment, options.timeout)
        found = run.read(out, list[Timed])
        if found is None:
            lines = run.console.read_text(errors="replace").splitlines()
            # What ranks say is marked; what the launcher says of their end tells no cause.
            said = [line for line in lines if line.startswith("[default")] or lines
            raise RingsideError("Nothing was timed; the launch said:\n" + "\n".join(said[-5:]))
        return found


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
