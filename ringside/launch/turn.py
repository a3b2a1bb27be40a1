"""A waiting run's own look at the queue: it takes its turn by itself, nobody hands it out."""

from __future__ import annotations

import platform
import time
from contextlib import suppress

from ringside.errors import RingsideError
from ringside.launch.claims import Claim, Claims, claim_of, devices_of
from ringside.launch.locks import queue_lock
from ringside.launch.queue import blockers, is_next
from ringside.launch.queue_order import Order, read_order
from ringside.launch.reconcile import is_abandoned, reconcile
from ringside.launch.supervisor_log import note
from ringside.records import is_local, read_owner, write_owner
from ringside.rundir import RunDir
from ringside.spec import RunSpec

LOOK_S = 1.0
# Short, so that a stop is heard while somebody else holds the lock.
LOCK_WAIT_S = 1.0


class Turn:
    """Belongs to the supervisor of a waiting run, which alone calls `take`.

    It remembers one run that stands in its way. As long as that one does, the others are not read:
    fifty runs that wait would read each other's files all the time.
    """

    def __init__(self, run: RunDir) -> None:
        self._run, self._root = run, run.path.parent
        self._host = platform.node()
        self._claims = Claims(self._root)
        self._in_the_way: tuple[Order, Claim] | None = None
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
        order = read_order(self._root, self._host)
        if order.is_paused or self._is_still_blocked(order):
            return False
        self._close_abandoned()
        if not self._is_next():
            return False
        with queue_lock(self._root, LOCK_WAIT_S):
            # Asked again: meanwhile another one may have started, or the order was changed.
            if not self._is_next():
                return False
            write_owner(self._run, "supervisor")
        return True

    def _is_still_blocked(self, order: Order) -> bool:
        """Whether what was in the way before still is, in the same order."""
        if self._in_the_way is None or order != self._in_the_way[0]:
            return False
        before = self._in_the_way[1]
        now = claim_of(RunDir(self._root / before.run_id))
        return now is not None and now.is_waiting == before.is_waiting

    def _is_next(self) -> bool:
        order = read_order(self._root, self._host)
        claims = self._claims.read(self._host)
        found = blockers(self._run.id, claims, order.runs)
        # A run that holds devices stays longer than one that waits for them.
        first = min(found, key=lambda claim: claim.is_waiting, default=None)
        self._in_the_way = (order, first) if first else None
        return is_next(self._run.id, claims, order)

    def _close_abandoned(self) -> None:
        """What is left of a run whose owner was killed may still train on our devices."""
        own = self._run.read(self._run.spec, RunSpec)
        for run in self._claims.unfinished():
            # One bad run stops nothing.
            with suppress(RingsideError, OSError):
                spec, owner = run.read(run.spec, RunSpec), read_owner(run)
                if own is None or spec is None or (owner is not None and not is_local(owner)):
                    continue
                if devices_of(spec) & devices_of(own) and is_abandoned(run):
                    reconcile(run)

    def _note(self, fault: str) -> None:
        if fault != self._fault:
            self._fault = fault
            note(self._run, f"It waits on: {fault}")
