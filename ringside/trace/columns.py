"""The columns of one trace file, collected event by event."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ringside.trace import kernels
from ringside.trace.annotated import Annotated, CommunicationArgs, add_what_annotations_say, call_of
from ringside.trace.clock import ends, nanoseconds
from ringside.trace.cpu_estimate import OperatorColumns, estimate
from ringside.trace.events import (
    COMMUNICATION,
    COMPUTE,
    MEMORY,
    NO_LAUNCH,
    CollectiveCall,
    GpuWork,
    HostCalls,
    Mark,
    Trace,
)
from ringside.trace.host_calls import CallColumns, holding, joined, of_ddp_log

if TYPE_CHECKING:
    from ringside.trace.intervals import Times

_CODES = {"compute": COMPUTE, "communication": COMMUNICATION, "memory": MEMORY}
# Operators and annotations whose number tells something; see the checks.
_COUNTED = frozenset({"SyncBatchNorm", "DataParallel.forward", "Broadcast", "Gather"})
# What were operators before there were annotations, in 2022.
_OLD_ANNOTATIONS = ("ProfilerStep", "enumerate(DataLoader)", kernels.DDP_FORWARD)
_HOST_CALLS = ("data", "synchronise", "event", "item", "blocked", "unused", "forward")


class Event(msgspec.Struct, gc=False):
    """One event as Kineto writes it; times in µs, arguments not decoded yet."""

    ph: str = ""
    name: str = ""
    cat: str | None = None
    ts: float = 0.0
    dur: float = 0.0
    pid: int | float | str | None = None
    tid: int | float | str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _LaunchArgs(msgspec.Struct, gc=False):
    correlation: Any = None


class Columns:
    """Collects the columns of one file, event by event."""

    def __init__(self) -> None:
        self.gpu_start: list[float] = []
        self.gpu_duration: list[float] = []
        self.gpu_kind: list[int] = []
        self.gpu_correlation: list[int] = []
        self.call_start: list[float] = []
        self.call_correlation: list[int] = []
        self.call_thread: list[int] = []
        self.collective_args: list[tuple[int, str, CommunicationArgs]] = []
        self.annotated: list[Annotated] = []
        self.operators = OperatorColumns()
        self.marks: list[tuple[str, float, float]] = []
        self.marking: set[int] = set()
        self.host = {name: CallColumns() for name in _HOST_CALLS}
        self.persistent: list[int] = []
        self.counts: Counter[str] = Counter()
        self.devices: set[Any] = set()
        self.threads: dict[tuple[Any, Any], int] = {}
        self.launch_args = msgspec.json.Decoder(_LaunchArgs).decode
        self.gpu_args = msgspec.json.Decoder(CommunicationArgs).decode

    def add(self, event: Event) -> None:
        category = event.cat or ""
        if category in kernels.OPERATORS:
            self._add_operator(event)
        elif category in kernels.RUNTIME:
            self._add_call(event)
        elif category in kernels.KERNELS or category in kernels.COPIES:
            self._add_work(event, category)
        elif category in kernels.ANNOTATIONS:
            self._add_annotation(event)

    def _thread(self, event: Event) -> int:
        return self.threads.setdefault((event.pid, str(event.tid)), len(self.threads))

    def _add_work(self, event: Event, category: str) -> None:
        kind = kernels.class_of(category, event.name)
        args = self.gpu_args(event.args)
        device = args.device if args.device is not None else event.pid
        if kind == "communication":
            self.collective_args.append((len(self.gpu_start), event.name, args))
        elif kernels.PERSISTENT in event.name:
            self.persistent.append(len(self.gpu_start))
        self.gpu_start.append(event.ts)
        self.gpu_duration.append(event.dur)
        self.gpu_kind.append(_CODES[kind])
        self.gpu_correlation.append(_whole(args.correlation))
        self.devices.add(device)

    def _add_call(self, event: Event) -> None:
        if kernels.SYNCHRONISATIONS.match(event.name):
            is_event = kernels.EVENT in event.name
            self._add_host("event" if is_event else "synchronise", event)
        if event.dur >= kernels.BLOCKED_US:
            self._add_host("blocked", event)
        correlation = _whole(self.launch_args(event.args).correlation)
        if correlation > 0:
            self.call_start.append(event.ts)
            self.call_correlation.append(correlation)
            self.call_thread.append(self._thread(event))

    def _add_operator(self, event: Event) -> None:
        name = event.name
        self.operators.add(event.ts, event.dur, name, self._thread(event))
        if name == "aten::item":
            self._add_host("item", event)
        elif name == "record_param_comms":
            self._add_annotated(event)
        elif name.endswith("::search_unused_parameters"):
            self._add_host("unused", event)
        elif name in _COUNTED:
            self.counts[name] += 1
        elif name.startswith(_OLD_ANNOTATIONS):
            self._add_annotation(event)

    def _add_annotation(self, event: Event) -> None:
        if kernels.STEP.match(event.name):
            self.marks.append((event.name, event.ts, event.dur))
            self.marking.add(self._thread(event))
        elif kernels.DATA_WAIT.match(event.name):
            self._add_host("data", event)
        elif event.name == kernels.DDP_FORWARD:
            self._add_host("forward", event)
        elif kernels.COLLECTIVE_ANNOTATION.match(event.name):
            self._add_annotated(event)
        if event.name in _COUNTED:
            self.counts[event.name] += 1

    def _add_annotated(self, event: Event) -> None:
        args = self.gpu_args(event.args)
        self.annotated.append((self._thread(event), event.ts, event.dur, event.name, args))

    def _add_host(self, name: str, event: Event) -> None:
        self.host[name].add(event.ts, event.dur, self._thread(event))

    def is_empty(self) -> bool:
        """Whether there was neither GPU work nor an operator."""
        return not self.gpu_start and not self.operators.start and not self.annotated

    def trace(self, path: Path, *, rank: int, world_size: int | None, num_events: int) -> Trace:
        """The collected columns as arrays."""
        has_gpu = bool(self.gpu_start)
        launch, thread = self._launches()
        if has_gpu:
            work, calls = self._work(launch, thread)
        else:
            work, calls = estimate(self.operators, self.annotated)
        host = self._host()
        return Trace(
            file=str(path),
            rank=rank,
            world_size=world_size,
            num_events=num_events,
            num_devices=len(self.devices),
            has_fractions=any(t % 1 for t in [*self.gpu_start, *self.gpu_duration]),
            is_cpu_estimate=not has_gpu,
            work=work,
            collectives=calls,
            steps=self._steps(),
            data_waits=host["data"],
            synchronisations=host["synchronise"],
            logging_syncs=host["logging"],
            items=host["item"],
            blocked=host["blocked"],
            unused_searches=host["unused"],
            persistent=launch[self.persistent],
            num_operators=dict(self.counts),
        )

    def _host(self) -> dict[str, HostCalls]:
        """The host's calls by kind; waits only of the threads that train."""
        calls = {name: columns.calls() for name, columns in self.host.items()}
        training = self.marking.union(self.operators.thread)
        # Where no thread of the driver's calls has an operator, their numbers mean something else.
        threads = training.intersection(self.call_thread)
        for name in ("synchronise", "event", "blocked"):
            calls[name] = calls[name].on(threads)
        events = calls["event"]
        logging = of_ddp_log(
            events, calls["forward"], (self.operators.start, self.operators.thread)
        )
        calls["logging"] = events.where(logging)
        calls["synchronise"] = joined(calls["synchronise"], events.where(~logging))
        waits = joined(calls["synchronise"], calls["blocked"])
        calls["item"] = calls["item"].where(holding(calls["item"], waits, by_thread=bool(threads)))
        return {name: found.without_thread() for name, found in calls.items()}

    def _work(self, launch: Times, thread: Times) -> tuple[GpuWork, tuple[CollectiveCall, ...]]:
        import numpy as np

        start = nanoseconds(self.gpu_start)
        order = np.argsort(start, kind="stable")
        row = np.empty(len(order), np.int64)
        row[order] = np.arange(len(order))
        work = GpuWork(
            start=start[order],
            end=ends(self.gpu_start, self.gpu_duration)[order],
            kind=np.array(self.gpu_kind, np.int8)[order],
            launch=launch[order],
        )
        calls = [
            (call_of(int(row[at]), name, args), int(launch[at]), int(thread[at]))
            for at, name, args in self.collective_args
        ]
        return work, add_what_annotations_say(calls, self.annotated)

    def _launches(self) -> tuple[Times, Times]:
        """For each piece of GPU work: when and on which thread the host launched it."""
        import numpy as np

        wanted = np.array(self.gpu_correlation, np.int64)
        known = np.array(self.call_correlation, np.int64)
        if not len(known):
            return np.full(len(wanted), NO_LAUNCH), np.full(len(wanted), NO_LAUNCH)
        order = np.argsort(known, kind="stable")
        at = order[np.clip(np.searchsorted(known[order], wanted), 0, len(known) - 1)]
        found = known[at] == wanted
        start, thread = nanoseconds(self.call_start), np.array(self.call_thread, np.int64)
        return np.where(found, start[at], NO_LAUNCH), np.where(found, thread[at], NO_LAUNCH)

    def _steps(self) -> tuple[Mark, ...]:
        start = nanoseconds([mark[1] for mark in self.marks]).tolist()
        length = nanoseconds([mark[2] for mark in self.marks]).tolist()
        names = [mark[0] for mark in self.marks]
        marks = {s: Mark(n, s, s + d) for n, s, d in zip(names, start, length, strict=True)}
        return tuple(marks[at] for at in sorted(marks))


def _whole(value: Any) -> int:
    """A correlation id; -1 for what is none (missing, a text)."""
    return value if type(value) is int and 0 <= value < 2**63 else -1
