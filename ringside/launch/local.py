"""Create a run directory and start its supervisor on this machine; both may be asked for twice."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from ringside import yaml_text
from ringside.errors import LaunchError
from ringside.hardware import Hardware
from ringside.identity import RUN_TOKEN, wait_until
from ringside.launch.locks import queue_lock, run_lock
from ringside.launch.plan import import_environment, make_plan, without_secrets
from ringside.launch.queue import refuse_held
from ringside.presets import accelerate_config
from ringside.rundir import RunDir, create_run_dir, list_run_dirs, write_atomic
from ringside.spec import RunSpec
from ringside.words import say

START_TIMEOUT_S = 10.0
RECENT_RUNS = 200


def create_run(spec: RunSpec, hardware: Hardware, root: Path) -> RunDir:
    """The run directory of this request, with spec, Accelerate file, plan and hardware in it.

    Asked again with the same `request_id`, it returns the directory of the first time; processes
    and threads may ask at once. Raises RunDirError where `root` cannot be written, LaunchError for
    GPUs that another run holds, unless the spec says `queue` or `beside`.
    """
    # From spec.json on it holds its devices, or waits for them, in the eyes of all others.
    with queue_lock(root):
        known = _requested_run(root, spec)
        if known is None:
            refuse_held(root, spec)
        return known or _fill_run_dir(spec, hardware, root)


def start(run: RunDir) -> None:
    """Start the run's supervisor, detached; returns when it has written owner.json.

    A run that was started already is left alone. Raises LaunchError when no supervisor comes up
    within 10 s.
    """
    with run_lock(run):
        if run.owner.exists() or run.exit.exists():
            return
        supervisor = _spawn_supervisor(run)
        wait_until(lambda: run.owner.exists() or supervisor.poll() is not None, START_TIMEOUT_S)
        if not run.owner.exists():
            supervisor.terminate()
            raise LaunchError(
                say(
                    "launching.no_supervisor",
                    run=run.id,
                    why=_last_line(run.supervisor_log),
                    log=run.supervisor_log,
                )
            )
    # Reaps the supervisor when it ends, so that a long-lived page collects no zombies.
    threading.Thread(target=supervisor.wait, daemon=True).start()


def start_run(spec: RunSpec, hardware: Hardware, root: Path) -> RunDir:
    """Create and start; pressed twice with one `request_id`, it is one run."""
    run = create_run(spec, hardware, root)
    start(run)
    return run


def _requested_run(root: Path, spec: RunSpec) -> RunDir | None:
    """The recent run of the same form; the same id on another request is another run."""
    if spec.request_id is None:
        return None
    for run in list_run_dirs(root)[:RECENT_RUNS]:
        if run.read(run.spec, RunSpec) == spec:
            return run
    return None


def _fill_run_dir(spec: RunSpec, hardware: Hardware, root: Path) -> RunDir:
    """spec.json comes last: a directory that has one is whole."""
    run = create_run_dir(root)
    config = accelerate_config(spec.accelerate, spec.num_processes)
    write_atomic(run.accelerate, yaml_text.dump(config).encode())
    run.write(run.hardware, hardware)
    run.write(run.plan, make_plan(spec, run))
    run.write(run.spec, spec)
    return run


def _spawn_supervisor(run: RunDir) -> subprocess.Popen[bytes]:
    environment = without_secrets(os.environ | import_environment())
    # A page that was itself started inside a run must not mark its supervisors as part of it.
    environment.pop(RUN_TOKEN, None)
    try:
        with run.supervisor_log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "ringside.launch.supervisor", str(run.path)],
                cwd=run.path,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        raise LaunchError(say("launching.unstartable", path=run.path, error=error)) from None


def _last_line(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else say("launching.silent", seconds=START_TIMEOUT_S)
