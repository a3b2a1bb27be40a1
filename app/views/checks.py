"""The checks of data that the page has started: one process each, results kept by data set.

A check belongs to the server, not to a tab: it goes on when the tab is closed, and whoever chooses
the same data sees it. A new server has none.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from app.views.check_messages import CheckMessage, Found, OddPicture, Progress, Refused
from app.views.child import Child
from ringside.data import DataReport
from ringside.errors import RingsideError
from ringside.spec import DataSpec
from ringside.words import in_this_language, say, spoken

log = logging.getLogger("ringside.page")

MAX_AT_ONCE = 2
MAX_KEPT = 8
_decoder = msgspec.json.Decoder(CheckMessage)


@dataclass(frozen=True)
class CheckState:
    """Where a check stands; `finished_t` in seconds since 1970, `sentence` says why it failed."""

    kind: Literal["none", "running", "stopping", "done", "failed", "stopped"] = "none"
    done: int = 0
    total: int = 0
    report: DataReport | None = None
    odd: tuple[OddPicture, ...] = ()
    sentence: str = ""
    finished_t: float | None = None

    @property
    def under_way(self) -> bool:
        """Whether its process lives."""
        return self.kind in ("running", "stopping")


@dataclass
class _Check:
    child: Child
    state: CheckState


class Checks:
    """All checks of one server, by the key of their data; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._checks: OrderedDict[str, _Check] = OrderedDict()

    def start(self, spec: DataSpec) -> None:
        """Start a check, or leave the one that is under way; RingsideError when too many are."""
        key = check_key(spec)
        with self._lock:
            busy = [name for name, check in self._checks.items() if check.state.under_way]
            if key in busy:
                return
            if len(busy) >= MAX_AT_ONCE:
                raise RingsideError(say("check.busy", n=len(busy)))
            argv = [sys.executable, "-m", "app.views.check_worker", spoken()]
            check = _Check(Child(argv, request=_request(spec)), CheckState("running"))
            self._checks[key] = check
            self._checks.move_to_end(key)
            self._forget()
        threading.Thread(target=in_this_language(self._follow), args=(check,), daemon=True).start()

    def stop(self, key: str) -> None:
        """End a check that is under way; any other key is left alone."""
        with self._lock:
            check = self._checks.get(key)
            if check is None or check.state.kind != "running":
                return
            check.state = replace(check.state, kind="stopping")
        check.child.stop()

    def state(self, key: str) -> CheckState:
        """Where the check of these data stands."""
        with self._lock:
            check = self._checks.get(key)
            return check.state if check else CheckState()

    def report(self, spec: DataSpec) -> DataReport | None:
        """What the last check of these data found; None before its end."""
        return self.state(check_key(spec)).report

    def _forget(self) -> None:
        ended = [key for key, check in self._checks.items() if not check.state.under_way]
        for key in ended[: max(0, len(self._checks) - MAX_KEPT)]:
            del self._checks[key]

    def _follow(self, check: _Check) -> None:
        """Read what the check says until its end; the thread is the only one that does."""
        last: CheckMessage | None = None
        for line in check.child.lines():
            try:
                last = _decoder.decode(line)
            except msgspec.DecodeError:
                continue  # a library printed something
            if isinstance(last, Progress):
                with self._lock:
                    check.state = replace(check.state, done=last.done, total=last.total)
        code, errors = check.child.finish()
        ended = _ended(last, was_stopped=check.child.stopped)
        if ended.kind == "failed" and not isinstance(last, Refused):
            log.error("A data check ended with code %d: %s", code, errors)
        with self._lock:
            check.state = replace(ended, finished_t=time.time())


def check_key(spec: DataSpec) -> str:
    """Equal for specs whose check is the same: the size that a model sees does not matter."""
    same = msgspec.structs.replace(spec, skip=(), image_size=DataSpec(source="").image_size)
    return hashlib.blake2b(msgspec.json.encode(same), digest_size=8).hexdigest()


def _request(spec: DataSpec) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(spec, skip=()))


def _ended(last: CheckMessage | None, *, was_stopped: bool) -> CheckState:
    match last:
        case Found(report, odd):
            return CheckState("done", report=report, odd=odd)
        case Refused(sentence):
            return CheckState("failed", sentence=sentence)
    if was_stopped:
        return CheckState("stopped", sentence=say("check.was_stopped"))
    return CheckState("failed", sentence=say("check.broken"))
