"""What is known of a collective: from its kernel's arguments, else from the annotation around it.

Since torch 2.2 Kineto writes size, type and group on the kernel itself. Before that, and for
coalesced calls, the annotation (`nccl:all_reduce`) or operator (`record_param_comms`) on the
launching thread that encloses the launch has them.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ringside.trace.events import CollectiveCall
from ringside.trace.kernels import COLLECTIVE_ANNOTATION, element_bytes, operation_of

MAX_SIZE = 2**53  # more bytes or elements are a damaged file
# (thread, start in µs, duration in µs, name, arguments)
Annotated = tuple[int, float, float, str, "CommunicationArgs"]


class CommunicationArgs(msgspec.Struct, gc=False):
    """The arguments of an event that are looked at; anything may be missing or odd."""

    device: int | str | None = None
    correlation: Any = None
    bytes: Any = None
    operation: Any = msgspec.field(name="Collective name", default=None)
    num_elements: Any = msgspec.field(name="In msg nelems", default=None)
    dtype: Any = None
    group: Any = msgspec.field(name="Process Group Name", default=None)
    group_size: Any = msgspec.field(name="Group size", default=None)
    sequence: Any = msgspec.field(name="Seq", default=None)
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw(b"null"))
    types: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw(b"null"))


def call_of(index: int, name: str, args: CommunicationArgs) -> CollectiveCall:
    """A collective from the event that carries it."""
    annotation = COLLECTIVE_ANNOTATION.match(name)
    operation = args.operation if isinstance(args.operation, str) else None
    dtype, num_bytes = _size(args)
    return CollectiveCall(
        index=index,
        operation=operation_of(operation or (annotation[2] if annotation else name)),
        num_bytes=num_bytes,
        dtype=dtype,
        group=args.group if isinstance(args.group, str) and args.group else None,
        group_size=_positive(args.group_size),
        sequence=args.sequence if type(args.sequence) is int else None,
    )


def add_what_annotations_say(
    calls: list[tuple[CollectiveCall, int, int]], annotated: list[Annotated]
) -> tuple[CollectiveCall, ...]:
    """Completes calls, each with (launch in ns, thread), from the narrowest annotation around."""
    by_thread: dict[int, list[Annotated]] = {}
    for item in sorted(annotated, key=lambda item: (item[1], -item[2])):
        by_thread.setdefault(item[0], []).append(item)
    done: list[CollectiveCall] = []
    for call, launch, thread in calls:
        around = _enclosing(by_thread.get(thread, []), launch / 1000)
        done.append(_completed(call, [call_of(call.index, item[3], item[4]) for item in around]))
    return tuple(sorted(done, key=lambda call: call.index))


def _enclosing(items: list[Annotated], moment: float) -> list[Annotated]:
    """Items, sorted by start, around a moment in µs; the narrowest first."""
    import bisect

    last = bisect.bisect_right(items, moment, key=lambda item: item[1])
    # Annotation and operator of one call begin within a few others of each other.
    near = items[max(last - 8, 0) : last]
    return [item for item in reversed(near) if moment <= item[1] + item[2]]


def _completed(call: CollectiveCall, others: list[CollectiveCall]) -> CollectiveCall:
    missing: dict[str, Any] = {}
    if call.operation == "send":  # the kernel SendRecv also does all-to-all
        missing["operation"] = next((o.operation for o in others if o.operation), "send")
    for name in ("operation", "num_bytes", "dtype", "group", "group_size", "sequence"):
        if getattr(call, name) is None:
            found = (getattr(other, name) for other in others)
            missing[name] = next((value for value in found if value is not None), None)
    return msgspec.structs.replace(call, **missing) if missing else call


def _size(args: CommunicationArgs) -> tuple[str | None, int | None]:
    """(element type, bytes) from the element count or from the input's shape."""
    dtype = args.dtype if isinstance(args.dtype, str) and args.dtype else None
    elements = _positive(args.num_elements)
    if dtype is None or elements is None:
        shape, of_shape = _first_tensor(args)
        dtype, elements = dtype or of_shape, elements or shape
    size = element_bytes(dtype) if dtype else None
    if elements and size:
        return dtype, elements * size
    return dtype, _positive(args.bytes)  # a copy between two GPUs


def _first_tensor(args: CommunicationArgs) -> tuple[int | None, str | None]:
    """Elements and type of the first tensor of `Input Dims`, which may be a list of tensors."""
    try:
        dims = msgspec.json.decode(args.dims)
        types = msgspec.json.decode(args.types)
    except msgspec.DecodeError:
        return None, None
    names = types if isinstance(types, list) else []
    dtype = next((name for name in names if isinstance(name, str) and name), None)
    while isinstance(dims, list) and dims and isinstance(dims[0], list):
        dims = dims[0]
    if not isinstance(dims, list) or not all(type(n) is int for n in dims) or not dims:
        return None, dtype
    return _positive(math.prod(dims)), dtype


def _positive(value: Any) -> int | None:
    return value if type(value) is int and 0 < value < MAX_SIZE else None
