"""The measurements that the page has started: one at a time, because they occupy the devices.

A measurement belongs to the server, not to a tab: it goes on when the tab is closed, and everybody
sees it. What it finds is stored beside the runs, so a new server knows it too.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from app.views.child import Child
from app.views.measuring_messages import Done, Failed, Message, Order, Said, What
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.launch.occupied import require_idle
from ringside.spec import RunSpec
from ringside.words import in_this_language, say, spoken

log = logging.getLogger("ringside.page")

TIMEOUT_S = 1200.0
WORKER = (sys.executable, "-m", "app.views.measuring_worker")
_decoder = msgspec.json.Decoder(Message)
# What is left of each where it is stopped.
_STOPPED: dict[What, str] = {
    "machine": "consult.was_stopped",
    "experiment": "consult.experiment_stopped",
    "presets": "bench.stopped",
}


@dataclass(frozen=True)
class MeasuringState:
    """Where the newest measurement stands; `line` is what it said last, times since 1970."""

    kind: Literal["none", "running", "stopping", "done", "failed", "stopped"] = "none"
    what: What = "machine"
    run_id: str | None = None
    specs: tuple[RunSpec, ...] = ()
    line: str = ""
    started_t: float | None = None

    @property
    def under_way(self) -> bool:
        """Whether its process lives."""
        return self.kind in ("running", "stopping")


class Measuring:
    """The one measurement of a server; safe to use from many threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._state = MeasuringState()
        self._child: Child | None = None

    @property
    def state(self) -> MeasuringState:
        """Where the newest one stands."""
        with self._lock:
            return self._state

    def start(
        self, what: What, hardware: Hardware, run_id: str | None = None,
        specs: tuple[RunSpec, ...] = (),
    ) -> None:  # fmt: skip
        """Begin; asked for what is under way already, nothing more happens.

        `run_id` for an experiment, `specs` for presets. RingsideError while another measurement or
        a run uses the devices.
        """
        with self._lock:
            now = self._state
            if now.under_way:
                if (now.what, now.run_id, now.specs) == (what, run_id, specs):
                    return
                raise RingsideError(say("consult.measuring_busy"))
            require_idle(self.root, hardware)
            order = Order(what, str(self.root), run_id, specs, spoken())
            request = msgspec.json.encode(order)
            child = self._child = Child(WORKER, request=request, timeout_s=TIMEOUT_S)
            self._state = MeasuringState(
                "running", what, run_id, specs, say("consult.measuring"), time.time()
            )
        threading.Thread(target=in_this_language(self._follow), args=(child,), daemon=True).start()

    def stop(self) -> None:
        """End the one under way."""
        with self._lock:
            if self._state.kind != "running" or self._child is None:
                return
            self._state = replace(self._state, kind="stopping", line=say("consult.stopping"))
            child = self._child
        child.stop()

    def _follow(self, child: Child) -> None:
        """Listen until its end; the thread is the only one that does."""
        try:
            self._listen(child)
        except Exception:
            log.exception("A measurement could not be followed")
            with self._lock:
                self._state = _ended(self._state, None, child)
            child.stop()

    def _listen(self, child: Child) -> None:
        last: Message | None = None
        for line in child.lines():
            try:
                last = _decoder.decode(line)
            except msgspec.DecodeError:
                continue  # a library printed something
            if isinstance(last, Said):
                with self._lock:
                    if self._state.kind == "running":
                        self._state = replace(self._state, line=last.line)
        code, errors = child.finish()
        with self._lock:
            self._state = _ended(self._state, last, child)
            if self._state.kind == "failed" and not isinstance(last, Failed):
                log.error("A measurement ended with code %d: %s", code, errors)


def _ended(state: MeasuringState, last: Message | None, child: Child) -> MeasuringState:
    match last:
        case Done(sentence):
            return replace(state, kind="done", line=sentence)
        case Failed(sentence):
            return replace(state, kind="failed", line=sentence)
    if child.stopped:
        return replace(state, kind="stopped", line=say(_STOPPED[state.what]))
    if child.timed_out:
        left = "" if state.what == "machine" else f" {say('consult.kept_so_far')}"
        return replace(state, kind="failed", line=say("consult.too_long") + left)
    return replace(state, kind="failed", line=say("consult.measuring_broken"))
