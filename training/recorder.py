"""Records a few steps with torch.profiler: the same ones on every rank, each in its own file."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from training.control import Control

UNRECORDED = 2
"""Steps before those that are kept: one to count its events, one for the profiler to settle."""

MAX_EVENTS = 1_000_000
"""Of one trace: five steps of 200,000. Perfetto and readers become slow beyond."""

GZIP_LEVEL = 4


class Recorder:
    """Starts with `begin`; the loop calls `enter` at each part of a step and `step` after it.

    A step has the marks data, forward, backward and optimizer, and torch's `ProfilerStep#N`.
    Whatever the profiler raises ends the recording of this rank, and training goes on.
    """

    def __init__(self, device: torch.device, control: Control) -> None:
        self.control = control
        self.activities = [ProfilerActivity.CPU]
        if device.type == "cuda":
            self.activities.append(ProfilerActivity.CUDA)
        else:
            # On a CPU Kineto reports the missing GPU as an error, in the middle of the console.
            os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        self.num_steps = 0
        self.problem: str | None = None
        self._course: Iterator[None] | None = None
        self._profile: Any = None
        self._part: Any = None

    @property
    def file(self) -> str:
        """The name of this rank's trace."""
        return f"rank{self.control.rank}.json.gz"

    @property
    def is_recording(self) -> bool:
        """Whether `step` is still to be called."""
        return self._course is not None

    def begin(self, num_steps: int, folder: Path | None = None) -> None:
        """Record `num_steps` steps after the next `UNRECORDED`, or fewer where they are large.

        This rank's trace of an earlier profile goes from `folder` at once: should this one fail on
        some rank, no two profiles are read as one.
        """
        self.problem, self.num_steps = None, 0
        if folder is not None:
            self._guarded(lambda: (folder / self.file).unlink(missing_ok=True))
        self._course = self._record(num_steps)
        next(self._course)

    def enter(self, part: str) -> None:
        """This part of the step begins, and the one before it ends."""
        if self._profile is not None:
            self._leave()
            self._part = torch.profiler.record_function(part)
            self._part.__enter__()

    def step(self) -> None:
        """A step is done. A collective of the side group after the first one."""
        assert self._course is not None
        self._leave()
        if next(self._course, self) is self:
            self._course = None

    def write(self, folder: Path) -> tuple[str, ...]:
        """Write the traces; the names of those that are complete, on all ranks. A collective."""
        traced, self._profile = self._profile, None
        if traced is not None:
            self._guarded(lambda: write_trace(traced, folder / self.file))
        done = self.control.gather([traced is not None and self.problem is None])[:, 0]
        return tuple(f"rank{rank}.json.gz" for rank, is_done in enumerate(done) if is_done)

    def _record(self, num_steps: int) -> Iterator[None]:
        self._start()
        yield
        counted, self._profile = self._profile, None
        num_events = 0
        if counted is not None:
            self._guarded(counted.stop)
            num_events = count_events(counted)
        largest = int(self.control.gather([num_events])[:, 0].max())
        self.num_steps = max(1, min(num_steps, MAX_EVENTS // max(1, largest)))
        self._start(schedule(wait=0, warmup=1, active=self.num_steps, repeat=1))
        for _ in range(self.num_steps + 1):
            yield
            if self._profile is not None:
                self._guarded(self._profile.step)

    def _start(self, steps: Any = None) -> None:
        if self.problem is not None:
            return
        made = profile(activities=self.activities, schedule=steps, record_shapes=True)
        self._profile = made if self._guarded(made.start) else None

    def _leave(self) -> None:
        if self._part is not None:
            self._part.__exit__(None, None, None)
            self._part = None

    def _guarded(self, action: Callable[[], object]) -> bool:
        """Do it; what it raises becomes the problem, and this rank records no more."""
        try:
            action()
        except Exception as error:
            self.problem = f"{type(error).__name__}: {error}".splitlines()[0].rstrip(".")
            self._profile = None
            return False
        return True


def count_events(traced: Any) -> int:
    """Events of a stopped profile; 0 where this torch does not tell."""
    try:
        return len(traced.profiler.kineto_results.events())
    except (AttributeError, RuntimeError):
        return 0


def write_trace(traced: Any, path: Path) -> None:
    """Kineto's JSON, packed and renamed into place. Raises OSError where it cannot be written."""
    path.parent.mkdir(exist_ok=True)
    plain = path.with_name(f".{path.name}.{os.getpid()}.json.tmp")
    packed = plain.with_suffix(".gz.tmp")
    try:
        traced.export_chrome_trace(str(plain))
        with (
            plain.open("rb") as source,
            packed.open("wb") as target,
            gzip.GzipFile("", "wb", GZIP_LEVEL, target, mtime=0) as stream,
        ):
            shutil.copyfileobj(source, stream, 1 << 20)
        with packed.open("rb") as written:
            os.fsync(written.fileno())
        packed.replace(path)
    finally:
        for left in (plain, packed):
            left.unlink(missing_ok=True)
