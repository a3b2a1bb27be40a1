"""Keeps with a run what was known before its start, and which warnings were overridden."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

import msgspec

from ringside.errors import RingsideError
from ringside.preflight.case import Case
from ringside.preflight.items import Item
from ringside.preflight.running import preflight
from ringside.rundir import RunDir
from ringside.words import DEFAULT, speaking


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """`preflight.json`. `accepted` are codes of warnings that somebody chose to start in spite of.

    In a terminal warnings are printed and the run starts, so all of them are accepted there.
    """

    format: int = 1
    items: tuple[Item, ...] = ()
    accepted: tuple[str, ...] = ()

    @property
    def accepted_items(self) -> tuple[Item, ...]:
        """The warnings that were overridden."""
        return tuple(
            item for item in self.items if item.level == "warning" and item.code in self.accepted
        )


def record_of(case: Case, accepted: Collection[str]) -> Kept:
    """What is to be kept; to be asked before the start, from which on the run is one of the runs.

    Files of runs are English, whatever the person at the page reads.
    """
    with speaking(DEFAULT):
        found = preflight(case)
    codes = tuple(item.code for item in found.warnings if item.code in accepted)
    return Kept(items=found.items, accepted=codes)


def keep(run: RunDir, kept: Kept) -> None:
    """Write `preflight.json` once; it is an extra, so the run goes on where it cannot be written.

    A second Start of the same form finds the file and leaves it alone.
    """
    if run.preflight.exists():
        return
    with suppress(RingsideError, OSError):
        run.write(run.preflight, kept)


def kept_of(run: RunDir) -> Kept | None:
    """What was kept; None for a run that was started without a preflight."""
    return run.read(run.preflight, Kept)
