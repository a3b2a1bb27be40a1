"""Trying a checkpoint on pictures: `python -m training.label` in the background, on the CPU.

Pictures lie in a folder for as long as they are looked at; of an answer only texts and small
previews are kept.
"""

from __future__ import annotations

import logging
import secrets
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from app.views.data import png_uri
from app.views.guesses import Guess, NoAnswerError, guesses_of
from ringside.checkpoints import CheckpointName, find_model
from ringside.data import thumbnail
from ringside.errors import DataError, RingsideError, RunDirError
from ringside.rundir import RunDir
from ringside.words import in_this_language, say

log = logging.getLogger("ringside.page")

MAX_PICTURES = 8
MAX_PICTURE_BYTES = 20_000_000
MAX_AT_ONCE = 2
MAX_KEPT = 32
PREVIEW_PX = 96


@dataclass(frozen=True)
class Picture:
    """An encoded picture; `truth` holds the labels it is known to have, None for unknown ones."""

    name: str
    content: bytes
    truth: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Tried:
    """What came of one picture: guesses, or the sentence that says why there are none."""

    name: str
    preview: str | None = None
    truth: tuple[str, ...] | None = None
    guesses: tuple[Guess, ...] = ()
    num_more: int = 0
    fault: str = ""


@dataclass(frozen=True)
class TrialState:
    """Where a trial stands; `started` in seconds since 1970."""

    kind: Literal["none", "running", "done", "failed"] = "none"
    started: float = 0.0
    num_pictures: int = 0
    tried: tuple[Tried, ...] = ()
    sentence: str = ""


class Trials:
    """The trials of one server, by a random id; safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._trials: OrderedDict[str, TrialState] = OrderedDict()

    def start(self, run: RunDir, pictures: Sequence[Picture]) -> str:
        """Begin, and return the id of the trial. RingsideError for what is too much."""
        found = checkpoint_of(run)
        if found is None:
            raise RunDirError(say("try.no_checkpoint", run=run.name))
        if not 0 < len(pictures) <= MAX_PICTURES:
            raise RingsideError(say("try.too_many", n=len(pictures), limit=MAX_PICTURES))
        trial_id = secrets.token_hex(8)
        state = TrialState("running", time.time(), len(pictures))
        with self._lock:
            running = sum(one.kind == "running" for one in self._trials.values())
            if running >= MAX_AT_ONCE:
                raise RingsideError(say("try.busy", n=running))
            self._trials[trial_id] = state
            while len(self._trials) > MAX_KEPT:
                self._trials.popitem(last=False)
        work = (trial_id, state, found[1], pictures)
        threading.Thread(target=in_this_language(self._work), args=work, daemon=True).start()
        return trial_id

    def state(self, trial_id: str | None) -> TrialState:
        """Where a trial stands; `none` for an id that there is not."""
        with self._lock:
            return self._trials.get(trial_id or "", TrialState())

    def _work(
        self, trial_id: str, state: TrialState, model: Path, pictures: Sequence[Picture]
    ) -> None:
        try:
            ended = replace(state, kind="done", tried=try_pictures(model, pictures))
        except NoAnswerError as error:
            log.warning("A trial of %s failed: %s", model, error.details)
            ended = replace(state, kind="failed", sentence=str(error))
        except RingsideError as error:
            ended = replace(state, kind="failed", sentence=str(error))
        except OSError as error:
            sentence = say("try.not_stored", why=error.strerror)
            ended = replace(state, kind="failed", sentence=sentence)
        except Exception:
            log.exception("A trial of %s failed", model)
            ended = replace(state, kind="failed", sentence=say("try.broken"))
        self._end(trial_id, ended)

    def _end(self, trial_id: str, state: TrialState) -> None:
        with self._lock:
            if trial_id in self._trials:
                self._trials[trial_id] = state


def checkpoint_of(run: RunDir) -> tuple[CheckpointName, Path] | None:
    """The best checkpoint, else the last one; None before the first is saved."""
    names: tuple[CheckpointName, ...] = ("best", "last")
    for name in names:
        with suppress(RunDirError):
            return name, find_model(run.path.parent, str(run.path), name)
    return None


def try_pictures(model: Path, pictures: Sequence[Picture]) -> tuple[Tried, ...]:
    """What the model says of each picture, in their order; raises RingsideError or OSError."""
    with tempfile.TemporaryDirectory(prefix="ringside-try-") as folder:
        # Under names of our own: a person's may be anything.
        paths = [Path(folder) / f"{i}" for i in range(len(pictures))]
        for path, picture in zip(paths, pictures, strict=True):
            path.write_bytes(picture.content)
        guessed, faults = guesses_of(model, paths)
    found = []
    for path, picture in zip(paths, pictures, strict=True):
        tried = Tried(picture.name, _preview(picture), picture.truth)
        if path in faults:
            fault = faults[path].replace(str(path), picture.name)
            found.append(replace(tried, fault=fault))
        else:
            guesses, num_more = guessed[path]
            found.append(replace(tried, guesses=guesses, num_more=num_more))
    return tuple(found)


def _preview(picture: Picture) -> str | None:
    with suppress(DataError):
        return png_uri(thumbnail(picture.content, picture.name, PREVIEW_PX))
    return None
