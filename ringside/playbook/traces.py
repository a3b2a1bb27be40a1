"""A trace as it is taken along: what its readers look at, and texts without paths.

Of an event's arguments only those on the list stay: no stacks, no sources, no addresses of memory.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec

from ringside.errors import TraceError
from ringside.playbook.redaction import Redactor
from ringside.trace.files import read_bytes, shown
from ringside.words import say

FIELDS = frozenset({"ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "bp", "s"})
ARGUMENTS = frozenset({
    "External id", "Record function id", "Ev Idx", "Sequence number", "Fwd thread id",
    "Concrete Inputs", "Input Dims", "Input type", "Input Strides", "device", "stream", "context",
    "correlation", "cbid", "bytes", "memory bandwidth (GB/s)", "grid", "block", "queued",
    "registers per thread", "shared memory", "blocks per SM", "warps per SM",
    "est. achieved occupancy %", "Collective name", "In msg nelems", "Out msg nelems",
    "Group size", "Process Group Name", "Process Group Description", "Process Group Ranks", "Rank",
    "Seq", "dtype", "In split size", "Out split size", "Global rank start", "Global rank stride",
    "sort_index", "name", "labels",
})  # fmt: skip
HEAD = frozenset({
    "schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit",
    "baseTimeNanoseconds", "record_shapes", "with_flops", "with_modules", "profile_memory",
    "cuda_driver_version", "cuda_runtime_version", "cupti_version",
})  # fmt: skip
LEVEL = 6


def cleared_trace(path: Path, redactor: Redactor) -> bytes:
    """The trace as `.json.gz`; TraceError for a file that is none."""
    try:
        content = msgspec.json.decode(read_bytes(path))
        events = [_event(event, redactor) for event in content["traceEvents"]]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        raise TraceError(say("playbook.no_trace", file=shown(path.name))) from None
    kept = {name: _texts(value, redactor) for name, value in content.items() if name in HEAD}
    # Without a time stamp: an equal trace makes equal bytes.
    return gzip.compress(msgspec.json.encode(kept | {"traceEvents": events}), LEVEL, mtime=0)


def _event(event: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    kept = {name: _texts(value, redactor) for name, value in event.items() if name in FIELDS}
    arguments = event.get("args")
    if arguments:
        kept["args"] = {
            name: _texts(value, redactor) for name, value in arguments.items() if name in ARGUMENTS
        }
    return kept


def _texts(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, list):
        return [_texts(one, redactor) for one in value]
    if isinstance(value, dict):
        return {name: _texts(one, redactor) for name, one in value.items()}
    return value
