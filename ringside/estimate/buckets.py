"""Which gradients DDP sends together, from their order and sizes.

The rule is that of torch's `compute_bucket_assignment_by_size` and `DistributedDataParallel`
(torch 2.11 to 2.14): gradients join a bucket until it has reached its limit; the last limit counts
for all that follow. Only where `bucket_cap_mb` is left unset is the first limit 1 MiB; a value that
is passed, 25 included, is the limit of all buckets. The first step uses one bucket for everything;
then DDP lays the buckets out again in the order in which the gradients became ready. With
`find_unused_parameters` it never does: its buckets follow the model and are sent backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringside.measurements import Gradient
from ringside.spec import RunSpec

MIB = 2**20
FIRST_BYTES = 1 * MIB
"""torch.distributed._DEFAULT_FIRST_BUCKET_BYTES."""

DEFAULT_BYTES = 25 * MIB
GRADIENT_BYTES = 4
"""Parameters are float32, autocast or not, and so are their gradients."""


class Bucket(NamedTuple):
    """Gradients that travel together: how many, their float32 bytes, when the last is ready."""

    num_gradients: int
    num_bytes: int
    ready_us: float


def assign(num_bytes: Sequence[int], limits: Sequence[int]) -> list[list[int]]:
    """Indices of each bucket; a bucket is closed by the tensor with which it reaches its limit."""
    buckets: list[list[int]] = []
    open_bucket: list[int] = []
    filled = 0
    for index, size in enumerate(num_bytes):
        open_bucket.append(index)
        filled += size
        if filled >= limits[min(len(buckets), len(limits) - 1)]:
            buckets.append(open_bucket)
            open_bucket, filled = [], 0
    return buckets + ([open_bucket] if open_bucket else [])


def limits_of(bucket_cap_mb: int | None) -> tuple[int, ...]:
    """The limits in bytes of a preset's `bucket_cap_mb`."""
    if bucket_cap_mb is None:
        return FIRST_BYTES, DEFAULT_BYTES
    return (bucket_cap_mb * MIB,)


def layout(gradients: Sequence[Gradient], bucket_cap_mb: int | None = None) -> list[Bucket]:
    """The buckets of every later step, in the order in which they are sent.

    `gradients` are in the order in which they become ready.
    """
    sizes = [GRADIENT_BYTES * gradient.num_elements for gradient in gradients]
    return [
        _bucket([gradients[index] for index in indices])
        for indices in assign(sizes, limits_of(bucket_cap_mb))
    ]


def unused_layout(gradients: Sequence[Gradient], bucket_cap_mb: int | None = None) -> list[Bucket]:
    """The buckets with `find_unused_parameters`, in the order in which they are sent.

    The order of the model is that of readiness backwards, but for a few neighbours.
    """
    return layout(gradients[::-1], bucket_cap_mb)[::-1]


def buckets_of(spec: RunSpec, gradients: Sequence[Gradient]) -> list[Bucket]:
    """The buckets of a request's DDP, in the order in which they are sent."""
    lay_out = unused_layout if spec.training.find_unused_parameters else layout
    return lay_out(gradients, spec.training.bucket_cap_mb)


def bucket_sizes(spec: RunSpec, gradients: Sequence[Gradient]) -> tuple[int, ...]:
    """The bytes that travel of each bucket: under a 16-bit hook half of them."""
    divisor = 1 if spec.training.comm_hook == "no" else 2
    return tuple(bucket.num_bytes // divisor for bucket in buckets_of(spec, gradients))


def _bucket(gradients: Sequence[Gradient]) -> Bucket:
    return Bucket(
        num_gradients=len(gradients),
        num_bytes=GRADIENT_BYTES * sum(gradient.num_elements for gradient in gradients),
        ready_us=max(gradient.ready_us for gradient in gradients),
    )
