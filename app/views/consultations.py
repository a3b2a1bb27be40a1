"""The visits to the doctor that the page has made, kept until a file behind them changes."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from app.views.child import Child
from app.views.doctor import DoctorView
from app.views.doctor_messages import Answer, Refused, Seen, Visit
from ringside.measurements import StepTiming
from ringside.measurements.store import FOLDER, prefix_of
from ringside.rundir import RunDir, list_run_dirs
from ringside.words import in_this_language, say, spoken

log = logging.getLogger("ringside.page")

MAX_AT_ONCE = 2
MAX_KEPT = 16
TIMEOUT_S = 180.0
RETRY_PAUSE_S = 30.0
"""How long a visit that failed stands before it is tried again."""
LIVE_PAUSE_S = 60
"""How often a run under way is looked at again, at most: looking takes seconds of a core."""

UNREAD = prefix_of(StepTiming)
"""Measurements that no visit reads."""

_decoder = msgspec.json.Decoder(Answer)
Signature = tuple[Any, ...]


@dataclass(frozen=True)
class ConsultState:
    """What is known: `view` may be of a little ago while `kind` is running."""

    kind: Literal["running", "done", "failed"]
    view: DoctorView | None = None
    sentence: str = ""


@dataclass
class _Visit:
    signature: Signature
    state: ConsultState
    ended: float = 0.0

    def holds(self, signature: Signature) -> bool:
        """Whether its state is the answer still."""
        if self.state.kind == "failed" and time.monotonic() - self.ended > RETRY_PAUSE_S:
            return False
        return self.signature == signature or self.state.kind == "running"


class Consultations:
    """All visits of one server, by run; safe to use from many threads."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.Lock()
        # By run and language: a visit is all sentences.
        self._visits: OrderedDict[tuple[str | None, str], _Visit] = OrderedDict()

    def state(self, run_id: str | None) -> ConsultState:
        """The visit of a run, or with None of the machine; starts one where files have changed."""
        signature, key = signature_of(self.root, run_id), (run_id, spoken())
        with self._lock:
            visit = self._visits.get(key)
            if visit is not None and visit.holds(signature):
                return visit.state
            view = visit.state.view if visit else None
            busy = sum(one.state.kind == "running" for one in self._visits.values())
            if busy >= MAX_AT_ONCE:
                return ConsultState("running", view)
            started = _Visit(signature, ConsultState("running", view))
            self._visits[key] = started
            self._visits.move_to_end(key)
            self._forget()
        look = in_this_language(self._look)
        threading.Thread(target=look, args=(run_id, started), daemon=True).start()
        return started.state

    def _forget(self) -> None:
        ended = [key for key, visit in self._visits.items() if visit.state.kind != "running"]
        for key in ended[: max(0, len(self._visits) - MAX_KEPT)]:
            del self._visits[key]

    def _look(self, run_id: str | None, visit: _Visit) -> None:
        """Whatever happens, the visit ends."""
        ended = ConsultState("failed", sentence=say("consult.broken"))
        try:
            ended = self._ask(run_id) or ended
        except Exception:
            log.exception("The doctor could not be asked")
        with self._lock:
            visit.state, visit.ended = ended, time.monotonic()

    def _ask(self, run_id: str | None) -> ConsultState | None:
        """The answer of a process; None when it gave none."""
        argv = [sys.executable, "-m", "app.views.doctor_worker"]
        request = msgspec.json.encode(Visit(str(self.root), run_id, spoken()))
        child = Child(argv, request=request, timeout_s=TIMEOUT_S)
        lines = list(child.lines())
        code, errors = child.finish()
        ended = _ended(lines, timed_out=child.timed_out)
        if ended is None:
            log.error("A visit to the doctor ended with code %d: %s", code, errors)
        return ended


def _ended(lines: list[bytes], *, timed_out: bool) -> ConsultState | None:
    for line in reversed(lines):
        try:
            answer = _decoder.decode(line)
        except msgspec.DecodeError:
            continue  # a library printed something
        match answer:
            case Seen(view):
                return ConsultState("done", view)
            case Refused(sentence):
                return ConsultState("failed", sentence=sentence)
    return ConsultState("failed", sentence=say("consult.too_long")) if timed_out else None


def signature_of(root: Path, run_id: str | None) -> Signature:
    """Changes when a file does that a visit reads; of a run under way, once a minute.

    Runs that have ended count too: one of them may be the baseline, or a point of the scaling.
    """
    measured = _files(root / FOLDER)
    if run_id is None:
        return (measured,)
    run = RunDir(root / run_id)
    events = _time(run.events)
    if not run.exit.exists():
        events //= LIVE_PAUSE_S * 10**9
    own = (events, _time(run.exit), _files(run.trace), _files(run.nccl))
    return (measured, _ended_runs(root), own)


def _ended_runs(root: Path) -> tuple[int, int]:
    """How many runs have ended, and when the last of them did."""
    times = [ended for run in list_run_dirs(root) if (ended := _time(run.exit))]
    return len(times), max(times, default=0)


def _files(folder: Path) -> tuple[tuple[str, int], ...]:
    try:
        with os.scandir(folder) as entries:
            return tuple(
                sorted(
                    (entry.name, entry.stat().st_mtime_ns)
                    for entry in entries
                    if not entry.name.startswith(UNREAD)
                )
            )
    except OSError:
        return ()


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
