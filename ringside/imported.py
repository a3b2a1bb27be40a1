"""Runs that were recorded on another machine and came with a playbook: `imported.json`.

They can be looked at. They are no measurements of this machine and cannot go on here.
"""

from __future__ import annotations

import msgspec

from ringside.errors import RunDirError
from ringside.rundir import RunDir
from ringside.spec import FORMAT
from ringside.words import say


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """The mark; `playbook` is the title of the one it came with."""

    format: int = FORMAT
    playbook: str


def read_imported(run: RunDir) -> Imported | None:
    """The mark, None for a run of this machine."""
    return run.read(run.imported, Imported)


def refuse_imported(run: RunDir) -> None:
    """RunDirError for a run that came with a playbook: nothing of it can go on here."""
    if run.imported.exists():
        raise RunDirError(say("playbook.no_resume", run=run.name))
