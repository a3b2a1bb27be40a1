"""The one way to train: `accelerate launch --config_file FILE -m training.train --preset NAME`.

Reads a RunSpec, builds the set-up, refuses to train on any other set-up than the one asked for,
and leaves events, scores and checkpoints in the run directory.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from contextlib import suppress
from typing import NoReturn

if not __package__:
    sys.exit(
        "Start the trainer as a module: accelerate launch --config_file FILE -m training.train"
    )

from ringside.garbage import no_collection

with no_collection():
    import torch

    from ringside.errors import RingsideError
    from ringside.events import EventWriter, RunFailed
    from ringside.rundir import RunDir
    from ringside.stacks import stacks_path
    from training import flight, nccl_log
    from training.asked_stacks import AskedStacks
    from training.control import Control
    from training.engine import Engine
    from training.failure import describe, print_error, write_error
    from training.join import PlainRun, join_context
    from training.onlooker import look_on
    from training.session import Session
    from training.watchdog import Watchdog

INTERRUPTED = 130
LEFT = 1  # not 0, with which the launcher would wait for the other ranks


def main(argv: list[str] | None = None) -> int:
    """Train one run on this rank; 0 when it ended as asked, 2 for a user's mistake, 1 otherwise."""
    rank = int(os.environ.get("RANK", "0"))
    run: RunDir | None = None
    plain: PlainRun | None = None
    try:
        spec, run, hardware = join_context(argv)
        flight.record_collectives()
        if run is not None:
            nccl_log.log_into(spec, run)
        engine = Engine(spec)
        control = Control(engine.rank, engine.world, spec.training.timeout_s)
        if run is None:
            plain = PlainRun(spec, hardware, control)
            run, engine.spec = plain.run, plain.spec
            nccl_log.log_into(engine.spec, run)
        watchdog = _follow(control, run, plain, spec.training.timeout_s)
        session = Session(engine, run, control)
        reason = session.run()
        control.mark.enter("finished")
        watchdog.end()
        if plain is not None:
            plain.finish(reason)
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, SystemExit) and run is None:
            raise  # --help, or flags that cannot be read.
        return _fail(run, plain, rank, error)
    if session.has_left:
        return LEFT
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    return 0


def _follow(control: Control, run: RunDir, plain: PlainRun | None, timeout_s: float) -> Watchdog:
    """Leave marks and, in case this rank comes no further, stacks and collectives."""
    control.run = run
    # Before the mark, which tells others whom they may ask.
    asked = AskedStacks(stacks_path(run, control.rank))
    control.mark.keep(run.ranks / f"rank{control.rank}.mark")
    flight.dump_into(run)

    def give_up(error: BaseException) -> None:
        try:
            _fail(run, plain, control.rank, error)
        finally:  # Whatever cannot be written, this rank ends.
            end_process(1)

    stacks = run.ranks / f"rank{control.rank}.stack.txt"
    watchdog = Watchdog(control.mark, stacks, timeout_s, give_up, asked)
    control.came_on = watchdog.came_on
    if plain is not None and control.rank == 0:
        look_on(run)
    return watchdog


def _fail(run: RunDir | None, plain: PlainRun | None, rank: int, error: BaseException) -> int:
    """Leave the cause where readers look for it; a user's mistake needs no traceback."""
    if isinstance(error, KeyboardInterrupt):
        if plain is not None:
            plain.finish("stopped")
        return INTERRUPTED
    print_error(rank, error)
    code = 2 if isinstance(error, RingsideError) else 1
    if run is not None:
        write_error(run, rank, error)
        if rank == 0:
            with suppress(OSError):  # The disk may be what failed.
                EventWriter(run.events).write(RunFailed(message=describe(error)))
    if plain is not None:
        plain.fail(code)
    return code


def end_process(code: int) -> NoReturn:
    """End with `code`, without Python's clean-up; what was printed is kept.

    After a failure that would wait for collectives and loader workers which never come. After
    success everything is on disk and the trackers have finished, but a thread of gloo's that still
    holds a tensor may abort the rank while Python is taken down (SIGABRT, seen about once in a
    hundred runs of two ranks), and the launcher would call a completed run failed.
    """
    for child in multiprocessing.active_children():
        child.terminate()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    end_process(main())
