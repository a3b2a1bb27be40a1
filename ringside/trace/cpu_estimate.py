"""Traces without a GPU: gloo's annotations are communication, leaf operators are compute.

An estimate: an operator may itself wait, and gloo works on threads that share the cores.
"""

from __future__ import annotations

from ringside.trace.annotated import Annotated, call_of
from ringside.trace.clock import nanoseconds
from ringside.trace.events import COMMUNICATION, COMPUTE, CollectiveCall, GpuWork
from ringside.trace.kernels import COLLECTIVE_ANNOTATION

# Operators that stand for a collective, not for arithmetic.
_NO_ARITHMETIC = ("c10d::", "record_param_comms", "gloo:", "ProfilerStep", "enumerate(")


class OperatorColumns:
    """Operators of a file: thread, start and duration in µs; collected for `estimate`."""

    def __init__(self) -> None:
        self.thread: list[int] = []
        self.start: list[float] = []
        self.duration: list[float] = []
        self.computes: list[bool] = []

    def add(self, thread: int, start: float, duration: float, name: str) -> None:
        self.thread.append(thread)
        self.start.append(start)
        self.duration.append(duration)
        self.computes.append(not name.startswith(_NO_ARITHMETIC))


def estimate(
    operators: OperatorColumns, annotated: list[Annotated]
) -> tuple[GpuWork, tuple[CollectiveCall, ...]]:
    """Host work in the place of GPU work; what launched it is the work itself."""
    import numpy as np

    leaf = _leaves(operators)
    named = [item for item in annotated if COLLECTIVE_ANNOTATION.match(item[3])]
    start = nanoseconds([*np.array(operators.start)[leaf], *(item[1] for item in named)])
    duration = nanoseconds([*np.array(operators.duration)[leaf], *(item[2] for item in named)])
    thread = [*np.array(operators.thread, np.int64)[leaf], *(item[0] for item in named)]
    kind = np.repeat([COMPUTE, COMMUNICATION], [len(leaf), len(named)]).astype(np.int8)
    order = np.argsort(start, kind="stable")
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    work = GpuWork(
        start=start[order],
        end=(start + duration)[order],
        kind=kind[order],
        stream=np.array(thread, np.int64)[order],
        launch=start[order],
    )
    calls = [
        call_of(int(row[len(leaf) + number]), item[3], item[4]) for number, item in enumerate(named)
    ]
    return work, tuple(sorted(calls, key=lambda call: call.index))


def _leaves(operators: OperatorColumns) -> list[int]:
    """Rows of operators that contain no other operator of their thread and do arithmetic."""
    import numpy as np

    start, thread = np.array(operators.start), np.array(operators.thread)
    end = start + np.array(operators.duration)
    if not len(start):
        return []
    order = np.lexsort((-end, start, thread))
    is_last = np.append(thread[order][1:] != thread[order][:-1], True)
    following = np.where(is_last, np.inf, np.append(start[order][1:], np.inf))
    leaf = order[following >= end[order]]
    return [int(at) for at in leaf if operators.computes[at]]
