"""What the page knows of leftover processes: looked for now and then, ended in the background."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ringside.errors import RingsideError
from ringside.shelf.deleting import empty_trash
from ringside.shelf.leftovers import Leftover, end_leftovers, find_leftovers
from ringside.words import in_this_language, remembering, say

log = logging.getLogger("ringside.page")

PAUSE_S = 10.0
"""Looking reads the environment of every process, which takes some ten milliseconds."""


@dataclass(frozen=True)
class LeftoverState:
    """The processes as they were seen last; `sentence` says why some could not be ended."""

    found: tuple[Leftover, ...] = ()
    cleaning: bool = False
    sentence: str = ""


class LeftoverWatch:
    """The leftovers of one runs folder, for any number of viewers; works in the background."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._state = LeftoverState()
        self._looked: float | None = None
        self._busy = False

    @property
    def state(self) -> LeftoverState:
        """What was seen last; looks again behind the viewer's back when that is a while ago."""
        now = time.monotonic()
        with self._lock:
            state = self._state
            if self._looked is not None and now - self._looked < PAUSE_S:
                return state
        self._begin(self._look)
        return state

    def clean(self) -> None:
        """End them all; a second call while that is under way does nothing more."""
        with self._lock:
            if self._state.cleaning:
                return
            self._state = LeftoverState(self._state.found, cleaning=True)
        threading.Thread(target=in_this_language(self._end), daemon=True).start()

    def empty_trash(self) -> None:
        """Remove what was moved aside."""
        threading.Thread(target=self._sweep, daemon=True).start()

    def _begin(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._busy or self._state.cleaning:
                return
            self._busy = True
        threading.Thread(target=work, daemon=True).start()

    def _look(self) -> None:
        try:
            found = tuple(find_leftovers(self.root))
            with self._lock:
                if not self._state.cleaning:
                    sentence = self._state.sentence if found else ""
                    self._state = LeftoverState(found, sentence=sentence)
        except Exception:
            log.exception("Leftover processes could not be looked for")
        finally:
            with self._lock:
                self._looked, self._busy = time.monotonic(), False

    def _end(self) -> None:
        state = LeftoverState(self._state.found, sentence=say("shelf.left_broken"))
        try:
            with remembering() as retold:
                left = tuple(end_leftovers(self.root))
            pids = ", ".join(str(one.pid) for one in left)
            state = LeftoverState(left, sentence=say("shelf.survivors", pids=pids) if left else "")
        except (RingsideError, OSError) as error:
            log.warning("Leftover processes could not be ended: %s", retold(str(error)))
            state = LeftoverState(state.found, sentence=str(error))
        except Exception:
            log.exception("Leftover processes could not be ended")
        finally:
            with self._lock:
                self._state, self._looked = state, None

    def _sweep(self) -> None:
        try:
            empty_trash(self.root)
        except RingsideError as error:
            log.warning("%s", error)
