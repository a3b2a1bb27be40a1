"""Transfer and waiting of collectives: who was late, and how long the bytes themselves took.

A collective's kernel runs from the moment its own rank is ready until all have the result, so its
duration is waiting for the last rank plus the transfer. Matched across ranks, the shortest
duration is the transfer (torch-tb-profiler's "Data Transfer" and "Synchronizing"). With one rank
alone, the fastest repetition of the same size stands for it, an estimate from above: a rank that
is always early waits in every repetition. Other sizes bound it further, see `_no_slower`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringside.trace.events import NO_LAUNCH, CollectiveCall, Trace
from ringside.trace.steps import step_of

if TYPE_CHECKING:
    from ringside.trace.intervals import Times

Key = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class Transfers:
    """Of one rank: for each of its collectives the transfer in ns; how many were matched."""

    transfer: Times
    step: Times
    num_matched: int


def transfers(traces: Sequence[Trace]) -> list[Transfers]:
    """The transfer of every collective of every rank, matched wherever that is possible."""
    import numpy as np

    steps = [_steps(trace) for trace in traces]
    matched = _matched(traces, steps)
    result = []
    for number, trace in enumerate(traces):
        own = _durations(trace)
        estimate = _fastest(trace, own, steps[number])
        found = np.array([matched.get((number, at), -1) for at in range(len(own))], np.int64)
        transfer = np.minimum(np.where(found >= 0, found, estimate), own)
        transfer = np.minimum(_of_the_step_before(trace, transfer, steps[number]), own)
        result.append(Transfers(transfer, steps[number], int((found >= 0).sum())))
    return result


def _durations(trace: Trace) -> Times:
    import numpy as np

    rows = np.array([call.index for call in trace.collectives], np.int64)
    return np.asarray(trace.work.end[rows] - trace.work.start[rows], np.int64)


def _steps(trace: Trace) -> Times:
    """The step that launched each collective; -1 for those launched before the trace began."""
    import numpy as np

    rows = np.array([call.index for call in trace.collectives], np.int64)
    return np.asarray(step_of(trace, trace.work.launch[rows]), np.int64)


def _matched(traces: Sequence[Trace], steps: list[Times]) -> dict[tuple[int, int], int]:
    """(number of the trace, number of the call) -> the shortest duration among its ranks."""
    groups: dict[Key, dict[int, int]] = defaultdict(dict)
    for number, trace in enumerate(traces):
        for at, key in _keys(trace, steps[number]).items():
            groups[key][number] = at
    durations = [_durations(trace) for trace in traces]
    result = {}
    for members in groups.values():
        if len(members) > 1:
            shortest = min(int(durations[number][at]) for number, at in members.items())
            result.update(dict.fromkeys(members.items(), shortest))
    return result


def _keys(trace: Trace, steps: Times) -> dict[int, Key]:
    """What a call has in common with its counterparts on other ranks.

    Group and sequence number where Kineto wrote them (since 2026); else the step's name, the
    operation, the size, and which one of these it is. Calls from before the trace have no place
    in a step and are not matched.
    """
    keys: dict[int, Key] = {}
    rows: dict[Key, list[int]] = defaultdict(list)
    for at, call in enumerate(trace.collectives):
        step = int(steps[at])
        if trace.work.launch[call.index] == NO_LAUNCH or (trace.steps and step < 0):
            continue
        if call.group is not None and call.sequence is not None:
            keys[at] = (call.group, call.sequence, call.operation)
        else:
            rows[(trace.steps[step].name if trace.steps else "", *_kind(call))].append(at)
    for kind, members in rows.items():
        # The number of them is part of the key: a rank with one more is not matched by order.
        keys.update({at: (*kind, place, len(members)) for place, at in enumerate(members)})
    return keys


def _of_the_step_before(trace: Trace, transfer: Times, steps: Times) -> Times:
    """Calls that were launched before the trace began, as the last ones of a step like the others.

    Kineto has no record of their launch and so neither size nor group. The last of them is taken
    for the last of a step, and so on; the median over the traced steps is its transfer.
    """
    import numpy as np

    launch = np.array([trace.work.launch[call.index] for call in trace.collectives], np.int64)
    early = np.flatnonzero(launch == NO_LAUNCH)
    in_steps = [np.flatnonzero((steps == n) & (launch != NO_LAUNCH)) for n in np.unique(steps)]
    result = transfer.copy()
    for place, at in enumerate(early[::-1], start=1):
        like = [transfer[rows[-place]] for rows in in_steps if len(rows) >= place]
        if like:
            result[at] = np.median(like)
    return result


def _kind(call: CollectiveCall) -> Key:
    return (call.group, call.operation, call.num_bytes, call.dtype)


def _fastest(trace: Trace, durations: Times, steps: Times) -> Times:
    """The shortest repetition of each call: the same size, or the same place in its step."""
    import numpy as np

    place: dict[Key, int] = defaultdict(int)
    rows: dict[Key, list[int]] = defaultdict(list)
    for at, call in enumerate(trace.collectives):
        kind = _kind(call)
        if call.num_bytes is None:
            here = (int(steps[at]), *kind)
            kind = (*kind, place[here])
            place[here] += 1
        rows[kind].append(at)
    fastest = {kind: int(np.min(durations[members])) for kind, members in rows.items()}
    result = durations.copy()
    for kind, members in rows.items():
        result[members] = _no_slower(kind, fastest)
    return result


def _no_slower(kind: Key, fastest: dict[Key, int]) -> int:
    """The least time that any size of an operation allows for this one.

    A message takes no longer than a larger one, and no longer per byte than a smaller one (both
    hold for t = α + S/β). So one bucket that nobody was late for bounds the others.
    """
    bound = fastest[kind]
    size = kind[2]
    for (group, operation, other, *_), time in fastest.items():
        is_alike = (group, operation) == kind[:2]
        if is_alike and isinstance(size, int) and isinstance(other, int):
            bound = min(bound, round(time * max(1.0, size / other)))
    return bound
