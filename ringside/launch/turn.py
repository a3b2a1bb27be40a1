"""A waiting run's own look at the queue: it takes its turn by itself, nobody hands it out."""

from __future__ import annotations

import platform
import time
from contextlib import suppress

from ringside.errors import RingsideError
from ringside.launch.claims import Claims, devices_of
from ringside.launch.locks import queue_lock
from ringside.launch.queue import is_next
from ringside.launch.queue_order import read_order
from ringside.launch.reconcile import is_abandoned, reconcile
from ringside.launch.supervisor_log import note
from ringside.records import is_local, read_owner, write_owner
from ringside.rundir import RunDir
from ringside.spec import RunSpec

LOOK_S = 1.0
# Short, so that a stop is heard while somebody else holds the lock.
LOCK_WAIT_S = 1.0


class Turn:
    """Belongs to the supervisor of a waiting run, which alone calls `take`."""

    def __init__(self, run: RunDir) -> None:
        self._run, self._root = run, run.path.parent
        self._host = platform.node()
        self._claims = Claims(self._root)
        self._looked = float("-inf")
        self._fault = ""

    def take(self) -> bool:
        """Whether the run now holds its devices; looks once a second, and not under the lock.

        What keeps it from looking (a full disk, a folder that does not answer) is noted once in
        supervisor.log, and it looks again.
        """
        if time.monotonic() - self._looked < LOOK_S:
            return False
        try:
            return self._take()
        except (RingsideError, OSError) as error:
            self._note(str(error))
            return False
        finally:
            self._looked = time.monotonic()

    def _take(self) -> bool:
        self._close_abandoned()
        if not self._is_next():
            return False
        with queue_lock(self._root, LOCK_WAIT_S):
            # Asked again: meanwhile another one may have started, or the order was changed.
            if not self._is_next():
                return False
            write_owner(self._run, "supervisor")
        return True

    def _is_next(self) -> bool:
        order = read_order(self._root, self._host)
        return is_next(self._run.id, self._claims.read(self._host), order)

    def _close_abandoned(self) -> None:
        """What is left of a run whose owner was killed may still train on our devices."""
        own = self._run.read(self._run.spec, RunSpec)
        for run in self._claims.unfinished():
            spec, owner = run.read(run.spec, RunSpec), read_owner(run)
            if own is None or spec is None or (owner is not None and not is_local(owner)):
                continue
            if devices_of(spec) & devices_of(own) and is_abandoned(run):
                with suppress(RingsideError):
                    reconcile(run)

    def _note(self, fault: str) -> None:
        if fault != self._fault:
            self._fault = fault
            note(self._run, f"It waits on: {fault}")
