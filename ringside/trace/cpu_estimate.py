"""Traces without a GPU: gloo's annotations are communication, operators are compute.

An estimate: an operator may itself wait, and gloo works on threads that share the cores.
"""

from __future__ import annotations

from ringside.trace.annotated import Annotated, call_of
from ringside.trace.clock import ends, nanoseconds
from ringside.trace.events import COMMUNICATION, COMPUTE, CollectiveCall, GpuWork
from ringside.trace.kernels import COLLECTIVE_ANNOTATION

# Namespaces of what surrounds arithmetic or stands for a collective. Autograd's wrappers contain
# the operators of backward; those are what counts.
_NO_ARITHMETIC = ("c10d::", "autograd::", "torch::distributed", "torch.distributed", "gloo:")


class OperatorColumns:
    """Operators of a file: start and duration in µs, and a number for the thread."""

    def __init__(self) -> None:
        self.start: list[float] = []
        self.duration: list[float] = []
        self.thread: list[int] = []

    def add(self, start: float, duration: float, name: str, thread: int) -> None:
        """Keeps operators that do arithmetic, such as `aten::addmm`."""
        if "::" in name and not name.startswith(_NO_ARITHMETIC):
            self.start.append(start)
            self.duration.append(duration)
            self.thread.append(thread)


def estimate(
    operators: OperatorColumns, annotated: list[Annotated]
) -> tuple[GpuWork, tuple[CollectiveCall, ...]]:
    """Host work in the place of GPU work; what launched it is the work itself."""
    import numpy as np

    named = [item for item in annotated if COLLECTIVE_ANNOTATION.match(item[3])]
    begin = [*operators.start, *(item[1] for item in named)]
    duration = [*operators.duration, *(item[2] for item in named)]
    num = len(operators.start)
    kind = np.repeat([COMPUTE, COMMUNICATION], [num, len(named)]).astype(np.int8)
    start = nanoseconds(begin)
    order = np.argsort(start, kind="stable")
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    work = GpuWork(
        start=start[order],
        end=ends(begin, duration)[order],
        kind=kind[order],
        launch=start[order],
    )
    calls = [call_of(int(row[num + number]), item[3], item[4]) for number, item in enumerate(named)]
    return work, tuple(sorted(calls, key=lambda call: call.index))
