"""What the doctor measures for the terminal and for the page, and keeps beside the runs.

Nothing is timed while a run uses the devices.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ringside.doctor.gathering import environment_of
from ringside.doctor.machine_check import keep_machine, sweep_ranks
from ringside.errors import RunDirError
from ringside.hardware import Hardware, read_hardware
from ringside.launch.occupied import require_idle
from ringside.machine import Machine
from ringside.measurements import Experiment, Sweep
from ringside.measurements.store import Store
from ringside.run import fold_run, require_spec
from ringside.rundir import RunDir
from ringside.words import DEFAULT, speaking

Say = Callable[[str], None]
SECONDS_PER_ARM = 10.0


def look_at_machine(root: Path) -> tuple[Machine, Path]:
    """What this machine has, and the file that keeps it."""
    from ringside.launch.torch_report import check_machine

    with speaking(DEFAULT):  # what it could not read is kept
        machine = check_machine(root, load_links=True)
    return machine, keep_machine(machine, root)


def sweep_machine(hardware: Hardware, root: Path, say: Say) -> tuple[Sweep, Path] | None:
    """How long collectives take here, and the file that keeps it; None of one device alone.

    RingsideError while a run uses the devices, and where they cannot talk to each other.
    """
    from ringside.launch.probing import measure_sweep

    num_ranks = sweep_ranks(hardware)
    if num_ranks < 2:
        return None
    require_idle(root, hardware)
    found = measure_sweep(hardware, num_ranks, say=say)
    return found, Store(root).save(found)


def measure_run(run: RunDir, root: Path, say: Say) -> Path:
    """The controlled experiment of a run's request on this machine, and the file that keeps it.

    RingsideError while a run uses the devices, and where the request cannot be repeated here.
    """
    from ringside.launch.probing import measure_experiment

    hardware = read_hardware()
    require_idle(root, hardware)
    record, store = fold_run(run), Store(root)
    found = measure_experiment(
        require_spec(record), hardware, environment=environment_of(record),
        seconds_per_arm=SECONDS_PER_ARM, say=say, keep=lambda latest: _keep(store, latest),
    )  # fmt: skip
    return store.save(found)


def _keep(store: Store, latest: Experiment) -> None:
    """In between only in case: whether it can be written is asked at the end."""
    with suppress(RunDirError):
        store.save(latest)
