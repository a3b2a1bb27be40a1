"""Whether a run gives a sign of life: when it was last heard of, and which half is silent."""

from __future__ import annotations

from dataclasses import dataclass

from app.views import figures
from ringside.life import sign_of_life
from ringside.run import RunRecord
from ringside.words import say

COARSE_S = 10.0


@dataclass(frozen=True)
class Life:
    """`heard_t` in seconds since 1970, None once the run is over and `ended` says when.

    It stays the same while the run gives only marks between its events, but for every ten seconds:
    the browser counts on, and what did not change need not be sent.
    """

    heard_t: float | None
    ended: str = ""
    silent: tuple[str, ...] = ()

    def sentence(self, now: float) -> str:
        """The line for people: `last sign of life 1 s ago`."""
        return self.ended or say("run.alive", ago=figures.since(self.heard_t, now))


def life_of(record: RunRecord, now: float) -> Life:
    """What is known at `now`; of a run that nobody took yet, since when it waits."""
    if record.final:
        when = figures.clock(record.finished_t or record.last_event_t)
        return Life(None, say("run.ended", when=when))
    found = sign_of_life(record, now)
    began = record.owner.started if record.owner else record.created_t
    event_t = record.last_event_t or began
    heard_t = event_t
    if found.trainer_s is not None:
        marked_t = (now - found.trainer_s) // COARSE_S * COARSE_S
        heard_t = max(marked_t, event_t or marked_t)
    return Life(heard_t, silent=tuple(found.silent))
