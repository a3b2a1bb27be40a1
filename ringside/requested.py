"""What a run has been asked for and has not done yet: the files of `requests/`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ringside.rundir import RunDir

REQUESTS = ("stop", "stop-after-epoch", "checkpoint", "profile")
"""A `checkpoint` and a `profile` are taken away by the trainer when it begins with them."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request: its `kind` is one of `REQUESTS`, `t` in seconds since 1970.

    `steps` to record, of a profile; `by` is "signal" when the supervisor passes a signal on.
    """

    kind: str
    t: float | None = None
    steps: int | None = None
    by: str | None = None


class _Written(msgspec.Struct, frozen=True):
    t: float | None = None
    steps: int | None = None
    by: str | None = None


def read_requests(run: RunDir) -> tuple[Asked, ...]:
    """The open requests in the order of `REQUESTS`; one that cannot be read counts as made."""
    return tuple(_read(run, kind) for kind in REQUESTS if run.requested(kind))


def _read(run: RunDir, kind: str) -> Asked:
    path: Path = run.requests / f"{kind}.json"
    found = run.read(path, _Written) or _Written()
    return Asked(kind=kind, t=found.t, steps=found.steps, by=found.by)
