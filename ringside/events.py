"""The lines of `events.jsonl`: one struct a kind, written by rank 0, read by everyone.

Every line is `{"kind": ..., "t": seconds since the epoch, ...}`. Missing is `null`; a number that
was not finite is `null` and its field's name stands in `non_finite`. A reader meets unknown kinds
as `UnknownEvent` and never fails on a bad line.
"""

from __future__ import annotations

import errno
import functools
import math
import operator
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from ringside.spec import Observed


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True):
    """Base of all events; `t` is wall-clock time in seconds since 1970."""

    t: float = 0.0


class RunStarted(Event, frozen=True, kw_only=True, tag="run_started"):
    """The set-up was built, compared with the request, and found equal."""

    observed: Observed
    num_train: int
    num_val: int
    num_classes: int
    task: str
    data_fingerprint: str
    data_title: str
    synthetic: bool = False
    steps_per_epoch: int
    learning_rate: float
    num_left_out: int | None = None
    resumed_from: str | None = None
    num_workers: int | None = None
    decoder: str | None = None
    decode_rate_cpu: float | None = None
    decode_rate_gpu: float | None = None


class PhaseStarted(Event, frozen=True, kw_only=True, tag="phase_started"):
    """What the run does now: data, setup, compile, train, evaluate, save, profile."""

    phase: str
    epoch: int | None = None


class WindowTimed(Event, frozen=True, kw_only=True, tag="window_timed"):
    """Means per optimizer step over a window of steps; times are the slowest rank's.

    A rank that waits for another shows it in `backward_ms`. The `_min` fields are the fastest
    rank's, and `memory_bytes` is the largest peak of a device since the start. `host_ms` is the
    longest that a host took to issue a step. `profiled`: torch.profiler was recording.
    """

    epoch: int
    step: int
    num_steps: int
    samples_per_s: float
    train_loss: float | None
    learning_rate: float
    step_ms: float
    data_ms: float
    forward_ms: float
    backward_ms: float
    optimizer_ms: float
    step_ms_min: float
    data_ms_min: float
    forward_ms_min: float | None = None
    backward_ms_min: float | None = None
    optimizer_ms_min: float | None = None
    host_ms: float | None = None
    memory_bytes: int | None = None
    profiled: bool = False
    non_finite: tuple[str, ...] = ()


class EpochTrained(Event, frozen=True, kw_only=True, tag="epoch_trained"):
    """The training part of an epoch; `epoch_time_s` leaves evaluation and saving out.

    `carried`: the run that this one continues trained it and was stopped before it was scored.
    `profiled`: the profiler recorded in this epoch, or earlier in this process, which can slow all
    that follows. The recorded steps count neither in the time nor in `num_samples`.
    """

    epoch: int
    epoch_time_s: float
    num_samples: int
    samples_per_s: float
    num_optimizer_steps: int
    train_loss: float | None
    grad_norm: float | None = None
    epoch_time_s_min: float
    data_ratio: float | None = None
    collectives_per_step: float | None = None
    skipped_steps: int | None = None
    num_profiled_steps: int = 0
    profiled: bool = False
    carried: bool = False
    non_finite: tuple[str, ...] = ()


class Evaluated(Event, frozen=True, kw_only=True, tag="evaluated"):
    """Scores of the whole validation split, every sample once."""

    epoch: int
    num_evaluated: int
    evaluation_time_s: float
    val_loss: float | None
    auc_macro: float | None
    num_auc_classes: int
    num_classes: int
    undefined_classes: tuple[str, ...] = ()
    untrained_classes: tuple[str, ...] = ()
    f1_macro: float | None
    f1_micro: float | None
    map_macro: float | None
    accuracy: float | None = None
    hamming_loss: float | None = None
    f1_macro_tuned: float | None = None
    threshold: float = 0.5
    non_finite: tuple[str, ...] = ()


class CheckpointSaved(Event, frozen=True, kw_only=True, tag="checkpoint_saved"):
    """A checkpoint is complete on disk; `path` is relative to the run directory."""

    path: str
    epoch: int
    best: bool = False


class DdpReported(Event, frozen=True, kw_only=True, tag="ddp_reported"):
    """What DDP says of itself on rank 0; what it did not say is None.

    The spans are DDP's own samples, from the first bucket's launch to the last one's wait, with all
    that happens in between: they are no times of transfers.
    """

    epoch: int
    step: int
    num_iterations: int | None = None
    bucket_bytes: tuple[int, ...] = ()
    rebuilt_bucket_bytes: tuple[int, ...] = ()
    has_rebuilt_buckets: bool | None = None
    find_unused_parameters: bool | None = None
    unused_parameter_bytes: int | None = None
    forward_span_ms: float | None = None
    backward_span_ms: float | None = None
    communication_span_ms: float | None = None
    overlap_span_ms: float | None = None


class Profiled(Event, frozen=True, kw_only=True, tag="profiled"):
    """Traces of `num_steps` steps are complete on disk; `files` are relative to the run directory.

    `step` is the last one recorded. `after_training`: the steps came after the last epoch and
    trained nothing.
    """

    step: int
    num_steps: int
    files: tuple[str, ...]
    after_training: bool = False


class Warned(Event, frozen=True, kw_only=True, tag="warned"):
    """Something the person should know and the run survives."""

    code: str
    message: str


class StopAgreed(Event, frozen=True, kw_only=True, tag="stop_agreed"):
    """All ranks agreed to end at this step because someone asked."""

    request: str
    epoch: int
    step: int


class RunFinished(Event, frozen=True, kw_only=True, tag="run_finished"):
    """The trainer came to its end; `reason` is completed or stopped."""

    reason: str
    total_time_s: float


class RunFailed(Event, frozen=True, kw_only=True, tag="run_failed"):
    """Rank 0 could still say why the run ends; every rank also leaves `ranks/rankN.error.json`."""

    message: str


class UnknownEvent(Event, frozen=True, kw_only=True, tag="unknown"):
    """A line of a newer writer, or one that cannot be read; kept so that nothing is lost."""

    line: str
    reason: str


KINDS: tuple[type[Event], ...] = (
    RunStarted, PhaseStarted, WindowTimed, EpochTrained, Evaluated, CheckpointSaved,
    DdpReported, Profiled, Warned, StopAgreed, RunFinished, RunFailed,
)  # fmt: skip

_union: Any = functools.reduce(operator.or_, KINDS)
_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(_union)
_lines: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[_union])

E = TypeVar("E", bound=Event)


def encode(event: Event) -> bytes:
    """One line, newline included."""
    return _encoder.encode(event) + b"\n"


def decode_lines(data: bytes) -> list[Event]:
    """All whole lines of `data`; a bad or unknown line becomes an UnknownEvent in its place."""
    try:
        # One array instead of many calls: this is the path of every healthy file.
        return list(_lines.decode(b"[" + data.strip().replace(b"\n", b",") + b"]"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [_decode_line(line) for line in data.splitlines() if line.strip()]


def _decode_line(line: bytes) -> Event:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return UnknownEvent(line=line[:2000].decode(errors="replace"), reason=str(error))


class OfSteps(Protocol):
    """A window of a run or of a rank."""

    @property
    def epoch(self) -> int:
        """Counted from 1."""

    @property
    def num_steps(self) -> int:
        """Optimizer steps in it."""


W = TypeVar("W", bound=OfSteps)


def without_starts(windows: Sequence[W]) -> list[W]:
    """The windows without those of a single step that begin an epoch; all where no other is there.

    In such a step the loader starts, and in the first epoch compilers and libraries choose: on a
    GPU it can take a thousand times as long as the next one. Where the list begins within an epoch,
    a first window of one step is left out as well.
    """
    later = [
        window
        for place, window in enumerate(windows)
        if window.num_steps > 1 or (place and windows[place - 1].epoch == window.epoch)
    ]
    return later or list(windows)


def finite(event: E) -> E:
    """The event with non-finite numbers turned to None and named in `non_finite`.

    JSON has no NaN; msgspec would write null and the reader could not tell it from missing.
    """
    bad = [
        name
        for name in event.__struct_fields__
        if isinstance(value := getattr(event, name), float) and not math.isfinite(value)
    ]
    if not bad:
        return event
    changes: dict[str, Any] = dict.fromkeys(bad)
    return msgspec.structs.replace(event, **changes, non_finite=tuple(bad))


class EventWriter:
    """Appends events to one file; a line is one `os.write`, so lines never mix."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._is_torn = False

    def write(self, event: Event) -> None:
        """Append one event, stamped with the current time; OSError when it does not fit."""
        line = encode(msgspec.structs.replace(finite(event), t=time.time()))
        # What a full disk cut off must not swallow the next line too.
        whole = b"\n" + line if self._is_torn else line
        num_written = os.write(self._fd, whole)
        self._is_torn = num_written < len(whole)
        if self._is_torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


class NullWriter:
    """Takes the events of ranks that own no event file."""

    def write(self, event: Event) -> None:
        """Drop the event."""

    def close(self) -> None:
        """Nothing to close."""
