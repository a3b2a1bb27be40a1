"""Measures for the page: `python -m app.views.measuring_worker`.

Reads one `Order` as a line of JSON, writes lines of `Message`, and ends when its standard input
does. What it finds is stored beside the runs, as the terminal's commands do.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from app.views.child import end_with_the_page
from app.views.measuring_messages import Done, Failed, Message, Order, Said
from ringside.doctor.gathering import MACHINE_FILE
from ringside.errors import RingsideError, RunDirError
from ringside.hardware import Hardware, read_hardware
from ringside.launch.torch_report import check_machine
from ringside.measurements.store import FOLDER, Store
from ringside.rundir import RunDir, write_atomic
from ringside.spec import RunSpec
from ringside.words import say

CPU_RANKS = 2
"""Processes of a sweep where there is no GPU."""


def main() -> int:
    """0 when something was measured, 1 when not, 130 when it was stopped."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    end_with_the_page()
    root = Path(order.root)
    try:
        run = RunDir(root / order.run_id) if order.run_id else None
        answer: Message = Done(measure_run(run, root) if run else measure_machine(root))
    except RingsideError as error:
        answer = Failed(str(error))
    except KeyboardInterrupt:
        return 130
    _tell(answer)
    return int(isinstance(answer, Failed))


def measure_machine(root: Path) -> str:
    """Look at the machine, store that, then sweep if there are several devices."""
    _say(say("consult.reading_machine"))
    machine = check_machine(root, load_links=True)
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(machine), indent=1)
    write_atomic(root / FOLDER / MACHINE_FILE, data + b"\n")
    num_ranks = sweep_ranks(machine.hardware)
    if num_ranks < 2:
        return say("consult.machine_alone")
    from ringside.launch.probing import measure_sweep

    _say(say("consult.sweeping", n=num_ranks))
    Store(root).save(measure_sweep(machine.hardware, num_ranks, say=_say))
    return say("consult.machine_done")


def measure_run(run: RunDir, root: Path) -> str:
    spec = run.read(run.spec, RunSpec)
    if spec is None:
        raise RunDirError(say("consult.no_run", run=run.name))
    from ringside.launch.probing import measure_experiment

    _say(say("consult.experimenting"))
    Store(root).save(measure_experiment(spec, read_hardware(), say=_say))
    return say("consult.experiment_done")


def sweep_ranks(hardware: Hardware) -> int:
    """One rank a GPU; without any, as many as there is a core for, two at most."""
    return len(hardware.gpus) or min(CPU_RANKS, hardware.num_devices())


def _say(line: str) -> None:
    _tell(Said(line))


def _tell(message: Message) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(message) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())
