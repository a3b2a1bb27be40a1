"""Reads Kineto's JSON: one pass over the events, each decoded for a moment only.

Decoding every event into objects takes 1.6 GB for 1.2 million of them. Here the list is split into
raw slices of the file first (`msgspec.Raw`, no copies), and what counts goes into columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ringside.errors import TraceError
from ringside.trace.columns import Columns, Event
from ringside.trace.events import Trace
from ringside.trace.files import rank_in_name, read_bytes, shown, trace_files
from ringside.words import say

MAX_US = 4e15  # twice that in nanoseconds is still an int64; 126 years
# Old Kineto writes these bare, which JSON does not know.
_NOT_JSON = re.compile(rb"(:\s*)-?(?:inf|nan|Infinity|NaN)(?=\s*[,}])")


class _Distributed(msgspec.Struct, frozen=True):
    rank: int | None = None
    world_size: int | None = None


class _File(msgspec.Struct):
    traceEvents: list[msgspec.Raw]  # noqa: N815 - Kineto's name
    distributedInfo: _Distributed = _Distributed()  # noqa: N815


def read_traces(paths: Iterable[Path]) -> tuple[list[Trace], list[str]]:
    """All traces that paths mean, by rank, and a sentence for each file that cannot be used.

    Raises `TraceError` when a path does not exist, when two files say the same rank, or when
    nothing is left to look at.
    """
    traces: list[Trace] = []
    faults: list[str] = []
    for path in trace_files(paths):
        try:
            traces.append(read_trace(path))
        except TraceError as error:
            faults.append(str(error))
    if not traces:
        raise TraceError(" ".join(faults))
    if not all(trace.is_cpu_estimate for trace in traces):
        faults += [_no_gpu_work(trace) for trace in traces if trace.is_cpu_estimate]
        traces = [trace for trace in traces if not trace.is_cpu_estimate]
    by_rank: dict[int, Trace] = {}
    for trace in traces:
        twin = by_rank.setdefault(trace.rank, trace)
        if twin is not trace:
            raise TraceError(
                say(
                    "trace_file.same_rank",
                    first=shown(twin.file),
                    second=shown(trace.file),
                    rank=trace.rank,
                )
            )
    return [by_rank[rank] for rank in sorted(by_rank)], faults


def _no_gpu_work(trace: Trace) -> str:
    return say("trace_file.no_gpu_work", path=shown(trace.file))


def read_trace(path: Path) -> Trace:
    """One rank's trace. Raises `TraceError` for a file that is cut off or no Kineto trace."""
    content = _decode(path)
    columns = Columns()
    decode = msgspec.json.Decoder(Event).decode
    for raw in content.traceEvents:
        try:
            event = decode(raw)
            if event.ph == "X" and 0 <= event.ts < MAX_US and 0 <= event.dur < MAX_US:
                columns.add(event)
        except msgspec.DecodeError:
            continue  # somebody else's event, such as one whose time is a text
    if columns.is_empty():
        raise TraceError(say("trace_file.no_work", path=shown(path)))
    info = content.distributedInfo
    rank = info.rank if info.rank is not None else rank_in_name(path)
    return columns.trace(
        path, rank=rank or 0, world_size=info.world_size, num_events=len(content.traceEvents)
    )


def _decode(path: Path) -> _File:
    data = read_bytes(path)
    try:
        return _decode_json(data)
    except RecursionError as error:
        raise TraceError(say("trace_file.too_deep", path=shown(path))) from error
    except msgspec.ValidationError as error:
        raise TraceError(say("trace_file.no_trace", path=shown(path), error=error)) from error
    except msgspec.DecodeError as error:
        if _NOT_JSON.search(data):
            try:
                return _decode_json(_NOT_JSON.sub(rb"\1null", data))
            except msgspec.DecodeError:
                pass
        if "truncated" in str(error):
            raise TraceError(say("trace_file.cut_off", path=shown(path))) from error
        raise TraceError(say("trace_file.no_json", path=shown(path), error=error)) from error


def _decode_json(data: bytes) -> _File:
    if data.lstrip()[:1] == b"[":  # the old autograd profiler writes the bare list
        return _File(msgspec.json.decode(data, type=list[msgspec.Raw]))
    return msgspec.json.decode(data, type=_File)
