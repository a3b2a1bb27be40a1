"""The one way to train: `accelerate launch --config_file FILE -m training.train --preset NAME`.

Reads a RunSpec, builds the set-up, refuses to train on any other set-up than the one asked for,
and leaves events, scores and checkpoints in the run directory.
"""

from __future__ import annotations

import os
import sys

if not __package__:
    sys.exit(
        "Start the trainer as a module: accelerate launch --config_file FILE -m training.train"
    )

import torch

from ringside.errors import RingsideError
from ringside.events import EventWriter, RunFailed
from ringside.rundir import RunDir
from training.control import Control
from training.engine import Engine
from training.failure import describe, write_error
from training.join import PlainRun, join_context
from training.session import Session

INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Train one run on this rank; 0 when it ended as asked, 2 for a user's mistake, 1 otherwise."""
    rank = int(os.environ.get("RANK", "0"))
    run: RunDir | None = None
    plain: PlainRun | None = None
    try:
        spec, run, hardware = join_context(argv)
        engine = Engine(spec)
        control = Control(engine.rank, engine.world)
        if run is None:
            plain = PlainRun(spec, hardware, control)
            run = plain.run
        control.run = run
        reason = Session(engine, run, control).run()
        if plain is not None:
            plain.finish(reason)
        return 0
    except (Exception, KeyboardInterrupt) as error:
        return _fail(run, plain, rank, error)
    finally:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


def _fail(run: RunDir | None, plain: PlainRun | None, rank: int, error: BaseException) -> int:
    """Leave the cause where readers look for it; a user's mistake needs no traceback."""
    if isinstance(error, KeyboardInterrupt):
        if plain is not None:
            plain.finish("stopped")
        return INTERRUPTED
    print(f"[rank {rank}] {describe(error)}", file=sys.stderr, flush=True)
    if run is not None:
        write_error(run, rank, error)
        if rank == 0:
            EventWriter(run.events).write(RunFailed(message=describe(error)))
    code = 2 if isinstance(error, RingsideError) else 1
    if plain is not None:
        plain.fail(describe(error), code)
    if code == 1:
        raise error
    return code


if __name__ == "__main__":
    sys.exit(main())
