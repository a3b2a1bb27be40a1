"""Another try of a run that failed for a reason which may be gone the next time.

It is a run of its own: it goes on from the last checkpoint and takes over the
devices. Memory that did not suffice, a loss that is not finite, data and settings stay as they are,
so a run that failed of them is not tried again.
"""

from __future__ import annotations

import msgspec

from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.launch.local import start_run
from ringside.launch.supervisor_log import note
from ringside.launch.verdict import Verdict
from ringside.rundir import RunDir
from ringside.spec import RunSpec

MAY_PASS = frozenset({"killed", "gone", "timeout", "lost_connection"})
"""Causes of failures: a signal, a rank without a word, and what NCCL or gloo waited for."""


def retry(run: RunDir, verdict: Verdict) -> RunDir | None:
    """Start the other try of `run`, which nothing is left of; None where there is none to make.

    What keeps it from starting is noted in supervisor.log.
    """
    spec, hardware = run.read(run.spec, RunSpec), run.read(run.hardware, Hardware)
    if spec is None or hardware is None or not _is_worth_it(run, spec, verdict):
        return None
    try:
        return start_run(_again(run, spec, verdict), hardware, run.path.parent)
    except (RingsideError, OSError) as error:
        note(run, f"It could not be tried again: {error}")
        return None


def _is_worth_it(run: RunDir, spec: RunSpec, verdict: Verdict) -> bool:
    if verdict.failure is None or run.requested("stop") or run.requested("stop-after-epoch"):
        return False
    return spec.retries > 0 and verdict.failure.cause in MAY_PASS


def _again(run: RunDir, spec: RunSpec, verdict: Verdict) -> RunSpec:
    """The same request from its last checkpoint; without one, as it began."""
    found = verdict.failure.checkpoint if verdict.failure else None
    return msgspec.structs.replace(
        spec,
        resume_from=str(run.path / found.path) if found else spec.resume_from,
        retries=spec.retries - 1,
        retry_of=run.id,
        queue=False,
        request_id=None,
    )
