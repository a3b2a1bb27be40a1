"""Runs of `benchmarks/story.py`: prepared one by one, trained in turn by one launch."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ringside import identity, yaml_text
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.launch.ladder import stop_ladder
from ringside.launch.local import create_run
from ringside.launch.plan import launcher_argv, make_plan
from ringside.launch.probe import probe_folder, reason
from ringside.measurements import Crowded
from ringside.presets import accelerate_config
from ringside.records import ExitRecord, rank_errors, write_exit
from ringside.rundir import RunDir, list_run_dirs, write_atomic
from ringside.spec import RunSpec

RANKS, CROWD = (Path(__file__).with_name(f"story_{name}.py") for name in ("ranks", "crowd"))
POLL_S, STEP_S = 0.5, 1.0
# Of no use here, and 600 MB a run.
BULKY = ("checkpoints", "predictions.npz", "scores", ".reserve")


def run_of(root: Path, spec: RunSpec) -> RunDir | None:
    """The run of this very request that has ended; None where it is still to be trained."""
    for run in list_run_dirs(root):
        if run.exit.exists() and run.read(run.spec, RunSpec) == spec:
            return run
    return None


def is_completed(run: RunDir) -> bool:
    """Whether it came to its end, rather than failed."""
    ended = run.read(run.exit, ExitRecord)
    return ended is not None and ended.state == "completed"


def forget_failed(root: Path, spec: RunSpec) -> None:
    """Remove the run of this request if it failed, so that it is trained once more."""
    run = run_of(root, spec)
    if run is not None and not is_completed(run):
        shutil.rmtree(run.path)


def drop_trace(run: RunDir | None) -> None:
    """Remove the traces of a run, by far the largest of its files."""
    if run is not None:
        shutil.rmtree(run.trace, ignore_errors=True)


def prepare(root: Path, spec: RunSpec, hardware: Hardware) -> RunDir:
    """A new run directory; what a killed call has left of the same cell goes."""
    for run in list_run_dirs(root):
        known = run.read(run.spec, RunSpec)
        if known is not None and known.request_id == spec.request_id and not run.exit.exists():
            shutil.rmtree(run.path)
    return create_run(spec, hardware, root)


def train_in_turn(runs: Sequence[RunDir], spec: RunSpec, window_s: float, timeout_s: float) -> bool:
    """One launch for all; False where its time was over. `spec` is the first run's.

    What ended a launch early is the first run without an end: it is written down as failed.
    """
    with probe_folder() as launch:
        launch.accelerate.write_bytes(runs[0].accelerate.read_bytes())
        turns, owner = launch.path / "turns.json", launch.path / "owner.json"
        pairs = [
            (str(run.path), port) for run, port in zip(runs, free_ports(len(runs)), strict=True)
        ]
        turns.write_bytes(msgspec.json.encode(pairs))
        owner.write_bytes(msgspec.json.encode(identity.of(os.getpid())))
        argv = [*launcher_argv(spec, launch), str(RANKS), str(turns), str(window_s), str(owner)]
        environment = os.environ | make_plan(spec, launch).environment
        code = execute(argv, launch, environment, timeout_s, lambda: tidy(runs))
        tidy(runs)
        if code is None:
            return False
        unfinished = next((run for run in runs if not run.exit.exists()), None)
        if unfinished is not None:
            write_exit(
                unfinished, state="failed", reason=_why(unfinished, launch, code), return_code=code
            )
    return True


def crowds_of(specs: Sequence[RunSpec], seconds: float, timeout_s: float) -> list[Crowded]:
    """What processes cost each other in the step of each request; fewer where time was over."""
    with probe_folder() as launch:
        config = accelerate_config(specs[0].accelerate, specs[0].num_processes)
        write_atomic(launch.accelerate, yaml_text.dump(config).encode())
        given, out = launch.path / "specs.json", launch.path / "crowds.json"
        given.write_bytes(msgspec.json.encode(specs))
        argv = [*launcher_argv(specs[0], launch), str(CROWD), str(given), str(out), str(seconds)]
        environment = os.environ | make_plan(specs[0], launch).environment
        # Ranks do not look for modules beside their script by themselves.
        paths = [str(CROWD.parent), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        code = execute(argv, launch, environment, timeout_s, lambda: None)
        found = launch.read(out, list[Crowded]) or []
        if len(found) < len(specs):
            say(f"crowds: {len(found)} of {len(specs)}, exit code {code}")
        return found


def execute(
    argv: list[str], run: RunDir, environment: dict[str, str], timeout_s: float,
    meanwhile: Callable[[], None],
) -> int | None:  # fmt: skip
    """The exit code of a launch; None of one that was ended with all that descends from it."""
    end = time.monotonic() + timeout_s
    with run.console.open("wb") as console:
        child = subprocess.Popen(
            argv, env=environment, cwd=run.path, stdin=subprocess.DEVNULL, stdout=console,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    launcher = identity.of(child.pid)
    try:
        while child.poll() is None:
            if time.monotonic() > end:
                return None
            time.sleep(POLL_S)
            meanwhile()
        return child.returncode
    finally:
        if child.poll() is None or identity.run_processes(run.id):
            stop_ladder([launcher], run.id, step_s=STEP_S)
        child.wait()


def tidy(runs: Sequence[RunDir]) -> None:
    """Remove what a run that has ended leaves and nobody here reads."""
    for run in runs:
        if not run.exit.exists():
            continue
        for name in BULKY:
            path = run.path / name
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def say(line: str) -> None:
    """Progress, apart from the report."""
    print(line, file=sys.stderr, flush=True)


def free_ports(num: int) -> list[int]:
    """Ports that nobody uses; held until the last is chosen, so that no two are the same."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(num)]
    ports = [int(one.getsockname()[1]) for one in held]
    for one in held:
        one.close()
    return ports


def _why(run: RunDir, launch: RunDir, code: int) -> str:
    """The run's own words, else the last ones of the launch."""
    errors = rank_errors(run)
    try:
        return errors[0].sentence if errors else reason(launch, code)
    except (OSError, RingsideError) as error:
        return str(error)
