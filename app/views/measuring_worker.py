"""Measures for the page: `python -m app.views.measuring_worker`.

Reads one `Order` as a line of JSON, writes lines of `Message`, and ends when its standard input
does. What it finds is stored beside the runs, as the terminal's commands do.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from app.views.child import end_with_the_page, tell_the_page
from app.views.measuring_messages import Done, Failed, Message, Order, Said
from ringside.doctor import measuring
from ringside.errors import RingsideError
from ringside.rundir import RunDir
from ringside.words import say, speak


def main() -> int:
    """0 when something was measured, 1 when not, 130 when it was stopped."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    speak(order.language)
    end_with_the_page()
    root = Path(order.root)
    try:
        run = RunDir(root / order.run_id) if order.run_id else None
        answer: Message = Done(measure_run(run, root) if run else measure_machine(root))
    except RingsideError as error:
        answer = Failed(str(error))
    except KeyboardInterrupt:
        return 130
    tell_the_page(answer)
    return int(isinstance(answer, Failed))


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


def _say(line: str) -> None:
    tell_the_page(Said(line))


if __name__ == "__main__":
    sys.exit(main())
