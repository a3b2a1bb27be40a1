"""Playbooks that the page makes: one at a time, in a child, while the page answers.

It belongs to the server, not to a tab: it goes on when the tab is closed, and everybody sees it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from app.views.playbook_export import export_in_child
from ringside.errors import RingsideError
from ringside.words import in_this_language, say

log = logging.getLogger("ringside.page")


@dataclass(frozen=True)
class MakingState:
    """Where the newest one stands; `name` is the finished playbook's, `started_t` since 1970."""

    kind: Literal["none", "running", "done", "failed"] = "none"
    run_ids: tuple[str, ...] = ()
    name: str = ""
    sentence: str = ""
    started_t: float = 0.0


class Making:
    """The playbook under way of one server; safe to use from many threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._state = MakingState()

    @property
    def state(self) -> MakingState:
        """Where the newest one stands."""
        with self._lock:
            return self._state

    def start(self, run_ids: Sequence[str], title: str | None = None) -> None:
        """Begin; asked for what is under way already, nothing more happens.

        RingsideError while another one is being made.
        """
        ids = tuple(run_ids)
        with self._lock:
            if self._state.kind == "running":
                if self._state.run_ids == ids:
                    return
                raise RingsideError(say("library.making_busy"))
            self._state = MakingState("running", ids, started_t=time.time())
        work = in_this_language(self._work)
        threading.Thread(target=work, args=(ids, title), daemon=True).start()

    def _work(self, ids: tuple[str, ...], title: str | None) -> None:
        try:
            name = export_in_child(self.root, ids, title=title).stem
            ended = MakingState("done", ids, name=name)
        except RingsideError as error:
            ended = MakingState("failed", ids, sentence=str(error))
        except Exception:
            log.exception("A playbook of %s could not be made", ", ".join(ids))
            ended = MakingState("failed", ids, sentence=say("library.making_broken"))
        with self._lock:
            self._state = ended
