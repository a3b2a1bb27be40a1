"""How a rank comes to its RunSpec and run directory: from the supervisor, or in a plain launch.

`--run-dir` is what Ringside passes. Without it the flags name a preset, rank 0 makes the run
directory, and the others are told its path and its spec once they have joined.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ringside import presets, yaml_text
from ringside.errors import RingsideError, RunDirError, SetupError
from ringside.hardware import Hardware, read_hardware
from ringside.launch.plan import observed_plan
from ringside.launch.verdict import judge
from ringside.overrides import parse_overrides
from ringside.records import FinalState, write_exit, write_owner
from ringside.request import RunRequest, resolve
from ringside.rundir import RunDir, check_format, create_run_dir, runs_root, write_atomic
from ringside.spec import RunSpec
from ringside.words import say
from training.agreement import other_request
from training.control import Control


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Flags of `-m training.train`; the same words as `ringside run`."""
    parser = argparse.ArgumentParser(prog="accelerate launch ... -m training.train")
    parser.add_argument(
        "--run-dir", type=Path, help="a prepared run directory (Ringside's own use)"
    )
    parser.add_argument("--preset", help="name of a preset, such as ddp")
    parser.add_argument(
        "--data",
        default="emoji",
        help="emoji, products, products:ci, a folder, a table or hf:owner/name",
    )
    parser.add_argument("--model", default=None, help="any timm model (resnet50)")
    parser.add_argument("--epochs", type=int, default=None)
    parser.add_argument("--batch", type=int, default=None, help="images per step over all devices")
    parser.add_argument("--image-size", type=int, default=None, help="pixels, square")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--separator", default=None, help="between the labels of a cell")
    parser.add_argument("--weights", default=None, help="file or run to begin with the weights of")
    parser.add_argument("--profile", type=int, default=None, help="steps to record at the end")
    parser.add_argument("--keep-global-batch", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args(argv)
    if (arguments.run_dir is None) == (arguments.preset is None):
        parser.error("give either --preset NAME or --run-dir DIR")
    return arguments


def read_spec(run: RunDir) -> RunSpec:
    """The spec of a prepared run directory."""
    spec = run.read(run.spec, RunSpec)
    if spec is None:
        raise RunDirError(f"{run.path} holds no readable spec.json.")
    check_format(spec.format, "spec.json")
    return spec


def plain_spec(arguments: argparse.Namespace, hardware: Hardware) -> RunSpec:
    """The spec of a plain `accelerate launch`: its process count is the launcher's."""
    spec = resolve(_request(arguments), hardware)
    _refuse_other_file(spec)
    # NCCL and gloo read their variables when the process group is made, which is later.
    for name, value in spec.environment.items():
        if os.environ.setdefault(name, value) != value:
            here = os.environ[name]
            raise SetupError(
                say("refused.other_variable", preset=spec.preset, name=name, value=value, here=here)
            )
    return spec


def _request(arguments: argparse.Namespace) -> RunRequest:
    return RunRequest(
        preset=arguments.preset,
        data=arguments.data,
        model=arguments.model,
        epochs=arguments.epochs,
        batch=arguments.batch,
        image_size=arguments.image_size,
        seed=arguments.seed,
        weights=arguments.weights,
        profile=arguments.profile,
        separator=arguments.separator,
        processes=int(os.environ.get("WORLD_SIZE", "1")),
        keep_global_batch=arguments.keep_global_batch,
        overrides=parse_overrides(arguments.set),
    )


def _refuse_other_file(spec: RunSpec) -> None:
    """The launcher's file and the preset must say the same; neither may win silently."""
    environment = os.environ
    pairs = {
        "mixed_precision": (
            spec.accelerate.mixed_precision,
            environment.get("ACCELERATE_MIXED_PRECISION", spec.accelerate.mixed_precision),
        ),
        "FSDP": (
            str(spec.strategy == "fsdp").lower(),
            environment.get("ACCELERATE_USE_FSDP", "false").lower(),
        ),
    }
    for name, (preset, file) in pairs.items():
        if preset != file:
            raise SetupError(
                say("refused.other_file", preset=spec.preset, name=name, value=preset, file=file)
            )


class PlainRun:
    """A run that the user launched: rank 0 makes the directory and keeps its identity and exit.

    `spec` is rank 0's: each rank has made its own, and they must be alike.
    """

    def __init__(self, spec: RunSpec, hardware: Hardware, control: Control) -> None:
        self.rank = control.rank
        specs = control.collect(spec)
        outcome = None if specs is None else other_request(specs) or _create(spec, hardware)
        outcome, self.spec = control.share((outcome, spec))
        if isinstance(outcome, RingsideError):
            raise outcome
        self.run = RunDir(Path(outcome))

    def finish(self, reason: FinalState) -> None:
        """Record the end of a run that came to its end."""
        if self.rank == 0:
            write_exit(self.run, state=reason, return_code=0, reason=f"The run {reason}.")

    def fail(self, return_code: int) -> None:
        """Record a failure that rank 0 could still see; `return_code` is this rank's."""
        if self.rank == 0:
            verdict = judge(self.run, return_code)
            write_exit(
                self.run, state="failed", return_code=return_code, reason=verdict.reason,
                failure=verdict.failure,
            )  # fmt: skip


def _create(spec: RunSpec, hardware: Hardware) -> str | RingsideError:
    """Make the directory that Ringside would have made; a refusal travels to all ranks."""
    try:
        run = create_run_dir(runs_root())
        config = presets.accelerate_config(spec.accelerate, spec.num_processes)
        write_atomic(run.accelerate, yaml_text.dump(config).encode())
        run.write(run.hardware, hardware)
        run.write(run.plan, observed_plan())
        run.write(run.spec, spec)
        write_owner(run, "terminal")
    except RingsideError as error:
        return error
    print(f"[rank 0] run {run.id} in {run.path}", flush=True)
    return str(run.path)


def join_context(argv: list[str] | None = None) -> tuple[RunSpec, RunDir | None, Hardware]:
    """Spec and, with --run-dir, the directory; every rank comes to the same spec."""
    arguments = parse_arguments(argv)
    if arguments.run_dir is not None:
        run = RunDir(arguments.run_dir)
        hardware = run.read(run.hardware, Hardware) or read_hardware()
        return read_spec(run), run, hardware
    hardware = read_hardware()
    return plain_spec(arguments, hardware), None, hardware
