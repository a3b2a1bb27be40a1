"""A few validation pictures of each run, taken when somebody asks for them."""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

import msgspec

from app.views.child import Child
from app.views.data import png_uri
from app.views.sample_worker import Samples
from app.views.trials import Picture
from ringside.errors import RingsideError, RunDirError
from ringside.rundir import RunDir
from ringside.spec import DataSpec, RunSpec
from ringside.words import in_this_language, say, spoken

log = logging.getLogger("ringside.page")

MAX_RUNS = 4
MAX_AT_ONCE = 2
TIMEOUT_S = 600.0


@dataclass(frozen=True)
class SampleState:
    """The pictures of one run, each with its preview as data URI; `sentence` says what failed."""

    kind: Literal["none", "running", "done", "failed"] = "none"
    pictures: tuple[tuple[Picture, str], ...] = ()
    sentence: str = ""


class SampleShelf:
    """The pictures of the runs that were looked at last; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken: OrderedDict[str, SampleState] = OrderedDict()

    def start(self, run: RunDir) -> None:
        """Take pictures in the background, unless they are there or on their way."""
        spec = run.read(run.spec, RunSpec)
        if spec is None:
            raise RunDirError(say("try.no_spec", run=run.name))
        with self._lock:
            if self._kind(run.id) in ("running", "done"):
                return
            if sum(one.kind == "running" for one in self._taken.values()) >= MAX_AT_ONCE:
                raise RingsideError(say("try.samples_busy"))
            self._taken[run.id] = SampleState("running")
            self._taken.move_to_end(run.id)
            self._forget()
        work = in_this_language(self._work)
        threading.Thread(target=work, args=(run.id, spec.data), daemon=True).start()

    def state(self, run_id: str) -> SampleState:
        """The pictures of a run, or how far they are."""
        with self._lock:
            return self._taken.get(run_id, SampleState())

    def _forget(self) -> None:
        ended = [run_id for run_id in self._taken if self._kind(run_id) != "running"]
        for run_id in ended[: max(0, len(self._taken) - MAX_RUNS)]:
            del self._taken[run_id]

    def _kind(self, run_id: str) -> str:
        return self._taken.get(run_id, SampleState()).kind

    def _work(self, run_id: str, spec: DataSpec) -> None:
        try:
            state = take(spec)
        except Exception:
            log.exception("No validation pictures of %s", spec.label)
            state = SampleState("failed", sentence=say("try.no_samples"))
        with self._lock:
            self._taken[run_id] = state


def take(spec: DataSpec) -> SampleState:
    """Ask a process for the pictures and wait for it."""
    argv = [sys.executable, "-m", "app.views.sample_worker", spoken()]
    child = Child(argv, request=msgspec.json.encode(spec), timeout_s=TIMEOUT_S)
    *_, last = [b"", *child.lines()]
    code, errors = child.finish()
    try:
        found = msgspec.json.decode(last, type=Samples)
    except msgspec.DecodeError:
        log.warning("Taking validation pictures ended with code %d: %s", code, errors)
        found = Samples(sentence=say("try.no_samples"))
    pictures = tuple(
        (Picture(one.name, one.content, one.labels), png_uri(one.png)) for one in found.samples
    )
    sentence = found.sentence or ("" if pictures else say("try.no_samples"))
    return SampleState("done" if pictures else "failed", pictures, sentence)
