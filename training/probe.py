"""Measures instead of training:
`accelerate launch --config_file FILE -m training.probe KIND --spec SPEC.json --out OUT.json`.

sweep     times of collectives by size                     -> ringside.measurements.Sweep
step      one arm of the controlled experiment             -> Experiment with this arm
describe  what one device does in a step (one process)     -> Description
trials    a sweep of a few sizes under other variables     -> Sweep; started without a launcher

SPEC is a RunSpec. Rank 0 writes OUT, whole or not at all. A user's mistake is one sentence on
standard error and exit code 2; where OUT lies in a run directory, it also stands in
`ranks/rankN.error.json`.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch

from ringside.errors import RingsideError, SetupError
from ringside.hardware import read_hardware
from ringside.identity import ProcessIdentity, is_alive
from ringside.measurements import ArmName, Description, Experiment, Sweep
from ringside.measurements.store import key_of_machine
from ringside.rundir import RunDir, check_format, write_atomic
from ringside.spec import RunSpec
from training.control import Control
from training.failure import print_error, write_error

# Accelerate and timm take seconds to load, and every process of a trial loads this module: what
# needs them is imported where it is used.

INTERRUPTED = 130
OWNER_POLL_S = 1.0


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Flags of `-m training.probe`."""
    parser = argparse.ArgumentParser(prog="accelerate launch ... -m training.probe")
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--spec", type=Path, required=True, help="a RunSpec as JSON")
    parser.add_argument("--out", type=Path, required=True, help="where the result goes")
    parser.add_argument("--seconds", type=float, default=10.0, help="of repeats or steps")
    parser.add_argument(
        "--bytes", type=int, nargs="+", default=[], help="sweep, trials: sizes, such as of buckets"
    )
    parser.add_argument(
        "--without-reduction", action="store_true", help="step: gradients stay where they are"
    )
    parser.add_argument(
        "--synthetic", action="store_true", help="step: batches made once, on the device already"
    )
    parser.add_argument(
        "--environment", type=_variables, action="append", default=[], metavar="JSON",
        help="trials: the variables of one",
    )  # fmt: skip
    parser.add_argument("--timeout", type=float, default=30.0, help="trials: seconds for each")
    parser.add_argument(
        "--owner", type=_identity, help="end with this process (Ringside's own use)"
    )
    arguments = parser.parse_args(argv)
    if not 0 < arguments.seconds < float("inf"):
        parser.error("--seconds must be more than 0")
    if any(size < 1 for size in arguments.bytes):
        parser.error("--bytes must be positive")
    return arguments


def _variables(text: str) -> dict[str, str]:
    return msgspec.json.decode(text.encode(), type=dict[str, str])


def _identity(text: str) -> ProcessIdentity:
    return msgspec.json.decode(text.encode(), type=ProcessIdentity)


def read_spec(path: Path) -> RunSpec:
    """The spec of a file; SetupError in a sentence when it holds none."""
    try:
        spec = msgspec.json.decode(path.read_bytes(), type=RunSpec)
    except OSError as error:
        raise SetupError(f"{path} cannot be read: {error.strerror}.") from None
    except msgspec.DecodeError as error:
        raise SetupError(f"{path} is no RunSpec: {error}.") from None
    check_format(spec.format, str(path))
    return spec


def sweep(spec: RunSpec, options: argparse.Namespace) -> Sweep:
    """All collectives between the ranks of this launch."""
    from training.engine import Engine
    from training.probes.sweep import measure_sweep

    engine = Engine(spec)
    if engine.world == 1:
        raise SetupError("A collective needs two ranks or more, and one process was started.")
    control = Control(engine.rank, engine.world, spec.training.timeout_s)
    series = measure_sweep(control, engine.device, seconds=options.seconds, wanted=options.bytes)
    return _sweep_of(spec, engine.device, series=series)


def trials(spec: RunSpec, options: argparse.Namespace) -> Sweep:
    """One series for each set of variables; this process itself touches no device."""
    from training.probes.trials import measure_trials

    series, failed = measure_trials(
        spec, options.environment, options.out.parent, sizes=options.bytes,
        seconds=options.seconds, timeout_s=options.timeout,
    )  # fmt: skip
    return _sweep_of(spec, torch.device(spec.device), series=series, failed=failed)


def _sweep_of(spec: RunSpec, device: torch.device, **found: Any) -> Sweep:
    from training.observation import device_name, versions

    return Sweep(
        t=time.time(),
        key=key_of_machine(read_hardware(), spec.num_processes, os.environ),
        device_name=device_name(device),
        num_ranks=spec.num_processes,
        versions=versions(),
        **found,
    )


def step(spec: RunSpec, options: argparse.Namespace) -> Experiment:
    """One arm; it is named by what was left out."""
    from training.probes.arms import measure_arm

    parts: list[str] = ["one" if spec.num_devices == 1 else "many"]
    if options.synthetic or options.without_reduction:
        parts = ["many"]
    parts += ["synthetic"] if options.synthetic else []
    parts += ["without_reduction"] if options.without_reduction else []
    name = msgspec.convert("_".join(parts), ArmName)
    return measure_arm(
        spec, name, seconds=options.seconds, reduces=not options.without_reduction,
        synthetic=options.synthetic,
    )  # fmt: skip


def describe(spec: RunSpec, options: argparse.Namespace) -> Description:
    """The request's step on one device, whatever its strategy."""
    from training.probes.describe import measure_description

    return measure_description(spec, seconds=options.seconds)


KINDS: dict[str, Callable[[RunSpec, argparse.Namespace], Any]] = {
    "sweep": sweep, "step": step, "describe": describe, "trials": trials,
}  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Measure on this rank; 0 when OUT was written, 2 for a user's mistake, 1 otherwise."""
    rank = int(os.environ.get("RANK", "0"))
    options = parse_arguments(argv)
    if options.owner is not None:
        _end_with(options.owner)
    try:
        if not options.out.parent.is_dir():
            raise SetupError(f"There is no folder {options.out.parent} for {options.out.name}.")
        spec = read_spec(options.spec)
        for name, value in spec.environment.items():
            os.environ.setdefault(name, value)
        result = KINDS[options.kind](spec, options)
        if rank == 0:
            data = msgspec.json.format(msgspec.json.encode(result), indent=1)
            write_atomic(options.out, data + b"\n")
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, KeyboardInterrupt):
            return INTERRUPTED
        print_error(rank, error)
        write_error(RunDir(options.out.parent), rank, error)
        return 2 if isinstance(error, RingsideError) else 1
    return 0


def _end_with(owner: ProcessIdentity) -> None:
    """End at once when whoever asked has gone: nobody waits for the figures, and devices are held.

    Its end need not have reached this process, which torch elastic put into a session of its own.
    """

    def watch() -> None:
        while is_alive(owner):
            time.sleep(OWNER_POLL_S)
        os._exit(1)

    threading.Thread(target=watch, name="owner", daemon=True).start()


if __name__ == "__main__":
    from training.train import end_process

    # All is written. A clean end may wait for NCCL's threads for minutes, or for ever.
    end_process(main())
