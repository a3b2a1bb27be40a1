"""`requests/profile.json`: a wish that a run records its next steps with torch.profiler."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ringside.errors import RunDirError, SpecError
from ringside.run import fold_run, require_spec
from ringside.rundir import RunDir
from ringside.spec import DEFAULT_PROFILE_STEPS, MAX_PROFILE_STEPS
from ringside.words import say


class _Wish(msgspec.Struct, frozen=True):
    steps: Annotated[int, msgspec.Meta(ge=1, le=MAX_PROFILE_STEPS)] = DEFAULT_PROFILE_STEPS


def ask_for_profile(run: RunDir, num_steps: int = DEFAULT_PROFILE_STEPS) -> None:
    """Ask a run under way; of two wishes that it has not met yet, the newer counts.

    Raises SpecError for a number out of range, RunDirError for a run that is over.
    """
    if not 1 <= num_steps <= MAX_PROFILE_STEPS:
        raise SpecError(
            say("request.steps_to_profile", limit=MAX_PROFILE_STEPS, num_steps=num_steps)
        )
    record = fold_run(run)
    require_spec(record)
    if record.final:
        raise RunDirError(
            say("request.over_to_profile", name=run.name, state=say(f"state.{record.state}"))
        )
    run.request("profile", steps=num_steps)


def asked_steps(run: RunDir) -> int:
    """How many steps somebody wants; the default where the request cannot be read."""
    wish = run.read(run.requests / "profile.json", _Wish)
    return (wish or _Wish()).steps
