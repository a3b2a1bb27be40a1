"""One launch of `training.probe`: a folder of its own, a result or a sentence, and nothing left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec

from ringside import identity, yaml_text
from ringside.errors import LaunchError
from ringside.identity import ProcessIdentity, run_processes
from ringside.launch.ladder import stop_ladder
from ringside.launch.plan import launcher_argv, make_plan
from ringside.presets import accelerate_config
from ringside.records import rank_errors
from ringside.rundir import RunDir, write_atomic
from ringside.spec import RunSpec
from ringside.words import say

Result = TypeVar("Result")

STEP_S = 1.0
MAX_LINE = 300


@contextmanager
def probe_folder() -> Iterator[RunDir]:
    """A run directory that no list shows and that goes with the measurement."""
    with tempfile.TemporaryDirectory(prefix="ringside-probe-", ignore_cleanup_errors=True) as name:
        run = RunDir(Path(name))
        for folder in (run.ranks, run.logs, run.nccl):
            folder.mkdir()
        yield run


def launch_probe(
    spec: RunSpec, run: RunDir, kind: str, arguments: Sequence[str], result: type[Result], *,
    timeout_s: float, environment: Mapping[str, str | None] | None = None, alone: bool = False,
) -> Result:  # fmt: skip
    """What the probe `kind` wrote; LaunchError with its own sentence when it wrote nothing.

    `environment` is added to that of the plan; None takes a variable away. `alone`: one process
    without a launcher. After `timeout_s`, on Ctrl+C and on any error, it is ended with all that
    descends from it.
    """
    out = run.path / f"{kind}.json"
    run.write(run.spec, spec)
    config = accelerate_config(spec.accelerate, spec.num_processes)
    write_atomic(run.accelerate, yaml_text.dump(config).encode())
    owner = msgspec.json.encode(identity.of(os.getpid())).decode()
    argv = [sys.executable] if alone else launcher_argv(spec, run)
    argv += ["-m", "training.probe", kind, "--spec", str(run.spec), "--out", str(out)]
    given = os.environ | make_plan(spec, run).environment | dict(environment or {})
    code = _execute(
        [*argv, "--owner", owner, *arguments],
        run,
        {name: value for name, value in given.items() if value is not None},
        timeout_s,
    )
    found = run.read(out, result)
    # Written when all was measured: a library that fails or hangs at the end changes nothing.
    if found is not None:
        return found
    if code is None:
        raise LaunchError(say("probes.too_long", timeout_s=timeout_s))
    raise LaunchError(reason(run, code))


def _execute(
    argv: list[str], run: RunDir, environment: Mapping[str, str], timeout_s: float
) -> int | None:
    """The exit code; None of what was ended after `timeout_s`."""
    with run.console.open("wb") as console:
        child = subprocess.Popen(
            argv,
            cwd=run.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    launcher = identity.of(child.pid)  # Until it is waited for, nobody else has its number.
    try:
        return child.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(child, launcher, run.id)


def _end(child: subprocess.Popen[bytes], launcher: ProcessIdentity, token: str) -> None:
    """Nothing stays behind: torch elastic gives ranks sessions of their own."""
    if child.poll() is None or run_processes(token):
        stop_ladder([launcher], token, step_s=STEP_S)
    child.wait()


def reason(run: RunDir, code: int) -> str:
    """Why a probe wrote nothing: the first cause in a rank's own words, else its last line."""
    errors = rank_errors(run)
    if errors:
        return errors[0].sentence
    text = run.console.read_text(errors="replace")
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    said = lines[-1][:MAX_LINE] if lines else say("probes.silent")
    return say("probes.ended", code=code, said=said)
