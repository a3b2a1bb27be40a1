"""Asking a run under way for a checkpoint, or for an end after the epoch it is in.

`ringside.profile_request` asks for a profile, `ringside.launch.stop` for an end at once. The
trainer looks about once a second, between steps.
"""

from __future__ import annotations

from ringside.errors import RunDirError
from ringside.run import RunRecord, fold_run, require_spec
from ringside.rundir import RunDir
from ringside.words import say

UNDER_WAY = ("launching", "running")


def ask_to_stop_after_epoch(run: RunDir) -> None:
    """The run ends after the epoch it is in, with that epoch's scores and checkpoint.

    Raises RunDirError for a run that is over, stops already, or has not been started.
    """
    _require_under_way(run, say("request.end"))
    run.request("stop-after-epoch")


def ask_for_checkpoint(run: RunDir) -> None:
    """The run saves `checkpoints/last` after its next steps and goes on.

    Raises RunDirError for a run that is over, stops already, or has not been started.
    """
    _require_under_way(run, say("request.save"))
    run.request("checkpoint")


def asked_lines(record: RunRecord) -> tuple[str, ...]:
    """One sentence for each open request of a run: `stops after epoch 3`; none when it is over."""
    if record.final:
        return ()
    return tuple(_line(record, asked.kind, asked.steps) for asked in record.asked)


def _line(record: RunRecord, kind: str, steps: int | None) -> str:
    if kind == "stop-after-epoch":
        return say("request.stop_after_epoch", epoch=record.epoch or 1)
    if kind == "profile":
        return say("request.profile_steps" if steps else "request.profile", n=steps)
    return say(f"request.{kind}")


def _require_under_way(run: RunDir, what: str) -> None:
    record = fold_run(run)
    require_spec(record)
    if record.state not in UNDER_WAY:
        state = say(f"state.{record.state}").lower()
        raise RunDirError(say("request.refused", run=run.name, state=state, what=what))
