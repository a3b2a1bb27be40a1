"""Rank 0 of a run started in a terminal looks out for a standstill, as a supervisor would."""

from __future__ import annotations

import os
import threading
import time

from ringside import identity
from ringside.identity import ProcessIdentity, descendants
from ringside.launch.hang_watch import LOOK_S, HangWatch
from ringside.rundir import RunDir


def look_on(run: RunDir) -> None:
    """Watch from a thread as long as this process lives.

    The launcher is this process's parent, and all ranks of this machine are its children.
    """
    watch = HangWatch(run, _ranks)

    def follow() -> None:
        while True:
            time.sleep(LOOK_S)
            watch.look()

    threading.Thread(target=follow, name="onlooker", daemon=True).start()


def _ranks() -> set[ProcessIdentity]:
    return {identity.of(os.getpid())} | descendants(os.getppid())
