"""Measures for the page: `python -m app.views.measuring_worker`.

Reads one `Order` as a line of JSON, writes lines of `Message`, and ends when its standard input
does. What it finds is stored beside the runs, as the terminal's commands do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.views.child import end_with_the_page, tell_the_page
from app.views.measuring_messages import Done, Failed, Message, Order, Said
from ringside.doctor import measuring
from ringside.errors import RingsideError, RunDirError
from ringside.hardware import read_hardware
from ringside.launch.bench_words import outcome_line, progress_line
from ringside.launch.occupied import require_idle
from ringside.launch.step_bench import StepBench
from ringside.measurements import StepTiming
from ringside.measurements.store import Store
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.words import say, speak


def main() -> int:
    """0 when something was measured, 1 when not, 130 when it was stopped."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    speak(order.language)
    end_with_the_page()
    try:
        answer: Message = Done(_measured(order, Path(order.root)))
    except RingsideError as error:
        answer = Failed(str(error))
    except KeyboardInterrupt:
        return 130
    tell_the_page(answer)
    return int(isinstance(answer, Failed))


def _measured(order: Order, root: Path) -> str:
    if order.what == "presets":
        return time_presets(order.specs, root)
    if order.run_id:
        return measure_run(RunDir(root / order.run_id), root)
    return measure_machine(root)


def measure_machine(root: Path) -> str:
    """Look at the machine, then time its collectives if there are several devices."""
    _say(say("consult.reading_machine"))
    machine, _ = measuring.look_at_machine(root)
    is_alone = measuring.sweep_machine(machine.hardware, root, _say) is None
    return say("consult.machine_alone" if is_alone else "consult.machine_done")


def measure_run(run: RunDir, root: Path) -> str:
    """The controlled experiment of a run."""
    measuring.measure_run(run, root, _say)
    return say("consult.experiment_done")


def time_presets(specs: Sequence[RunSpec], root: Path) -> str:
    """A few steps of each, and of one device beside them; each is stored as soon as it is timed."""
    hardware = read_hardware()
    require_idle(root, hardware)
    bench, store = StepBench(specs), Store(root)
    bench.run(
        hardware,
        lambda number, spec, left_s: _say(progress_line(bench, number, spec, left_s)),
        lambda found: _keep(store, found),
    )
    return outcome_line(bench)


def _keep(store: Store, found: StepTiming) -> None:
    """Where it cannot be written its card stays without it; the others are timed all the same."""
    try:
        store.save(found)
    except RunDirError as error:
        _say(str(error))


def _say(line: str) -> None:
    tell_the_page(Said(line))


if __name__ == "__main__":
    sys.exit(main())
