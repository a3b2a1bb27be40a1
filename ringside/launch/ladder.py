"""The last steps of a stop: SIGTERM, SIGKILL, and the proof that nothing is left.

torch elastic gives each worker its own session, so neither the launcher's process group nor the
launcher's end covers them: the family is written down before the first signal.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from ringside.errors import LaunchError
from ringside.identity import (
    ProcessIdentity,
    alive,
    descendants,
    marked_processes,
    signal_process,
    wait_gone,
)
from ringside.words import say

GRACE_S = 20.0
STEP_S = 5.0
GRACE_VARIABLE = "RINGSIDE_STOP_GRACE_S"


def stop_grace_s() -> float:
    """Seconds that a trainer gets to end by itself: RINGSIDE_STOP_GRACE_S, else 20.

    Raises LaunchError for a value that is not a number of seconds.
    """
    text = os.environ.get(GRACE_VARIABLE)
    if text is None:
        return GRACE_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise LaunchError(say("launching.bad_grace", name=GRACE_VARIABLE, text=text))
    return seconds


def stop_ladder(
    roots: Iterable[ProcessIdentity],
    run_id: str,
    *,
    known: Iterable[ProcessIdentity] = (),
    step_s: float = STEP_S,
) -> set[ProcessIdentity]:
    """End a run's processes: the `roots` (launchers) first, then everything that descends.

    `known` adds processes that neither descend from a root nor carry the token of the run. Another
    run that was started inside this one is spared, with all that descends from it. Each rung waits
    at most `step_s` seconds. Returns the survivors; empty means: nothing is left.
    """
    roots = _others(roots)
    # A launcher that was started by hand inside another run carries the token of that one.
    inherited = {token for token, found in marked_processes().items() if found & roots}
    tokens = {run_id} | inherited
    family = _family(roots | set(known), run_id, tokens)
    _signal_all(roots, signal.SIGTERM)
    wait_gone(roots, step_s)
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        # Looked up again at each rung: a child may have been born after the last look.
        family |= _family(family, run_id, tokens)
        if not alive(family):
            return set()
        _signal_all(family, number)
        wait_gone(family, step_s)
    return alive(family | _family(family, run_id, tokens))


def _family(members: set[ProcessIdentity], run_id: str, tokens: set[str]) -> set[ProcessIdentity]:
    """The members, what carries the run's token, and below them all but runs of other tokens."""
    marked = marked_processes()
    own = marked.get(run_id, set())
    found = _with_descendants(alive(members) | own)
    others = {process for token in marked.keys() - tokens for process in marked[token]}
    return _others(found - (_with_descendants(found & others) - own))


def _with_descendants(members: set[ProcessIdentity]) -> set[ProcessIdentity]:
    return members.union(*(descendants(member.pid) for member in members))


def _others(members: Iterable[ProcessIdentity]) -> set[ProcessIdentity]:
    """The ladder never ends the process that climbs it."""
    return {member for member in members if member.pid != os.getpid()}


def _signal_all(members: set[ProcessIdentity], number: int) -> None:
    for member in members:
        signal_process(member, number)
