"""Going on from a run's last checkpoint, for the page and the terminal alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ringside.errors import RunDirError
from ringside.hardware import Hardware
from ringside.imported import refuse_imported
from ringside.launch.reconcile import orphan_sentence, reconcile
from ringside.request import continue_run
from ringside.run import fold_run
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.words import say


def spec_to_resume(run: RunDir, hardware: Hardware, **changes: Any) -> RunSpec:
    """The request of a run that goes on, with the changes of `continue_run`.

    RingsideError where it cannot, in a sentence.
    """
    refuse_imported(run)
    if not fold_run(run).final:
        raise RunDirError(say("request.not_over", name=run.name))
    if sentence := orphan_sentence(run):
        raise RunDirError(sentence)
    reconcile(run)
    return continue_run(run, hardware, **changes)


def resume_run(run: RunDir, hardware: Hardware, root: Path, *, request_id: str) -> RunDir:
    """Start it, and store what is predicted; asked twice with one `request_id` it is one run.

    On GPUs that another run holds it waits in the queue.
    """
    from ringside.estimate import store_estimate
    from ringside.launch.local import start_run

    spec = spec_to_resume(run, hardware, queue=bool(hardware.gpus))
    spec = msgspec.structs.replace(spec, request_id=request_id)
    started = start_run(spec, hardware, root)
    store_estimate(started, spec, hardware, root)
    return started
