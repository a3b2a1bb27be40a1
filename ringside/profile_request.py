"""`requests/profile.json`: a wish that a run records its next steps with torch.profiler."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ringside.errors import RunDirError, SpecError
from ringside.run import fold_run, require_spec
from ringside.rundir import RunDir
from ringside.spec import DEFAULT_PROFILE_STEPS, MAX_PROFILE_STEPS


class _Wish(msgspec.Struct, frozen=True):
    steps: Annotated[int, msgspec.Meta(ge=1, le=MAX_PROFILE_STEPS)] = DEFAULT_PROFILE_STEPS


def ask_for_profile(run: RunDir, num_steps: int = DEFAULT_PROFILE_STEPS) -> None:
    """Ask a run under way; of two wishes that it has not met yet, the newer counts.

    Raises SpecError for a number out of range, RunDirError for a run that is over.
    """
    if not 1 <= num_steps <= MAX_PROFILE_STEPS:
        raise SpecError(f"1 to {MAX_PROFILE_STEPS} steps can be profiled, not {num_steps}.")
    record = fold_run(run)
    require_spec(record)
    if record.final:
        raise RunDirError(
            f"{run.name} is over ({record.state}); start one that records steps at its end: "
            "ringside run PRESET --profile 5."
        )
    run.request("profile", steps=num_steps)


def asked_steps(run: RunDir) -> int:
    """How many steps somebody wants; the default where the request cannot be read."""
    wish = run.read(run.requests / "profile.json", _Wish)
    return (wish or _Wish()).steps
