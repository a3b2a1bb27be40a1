"""Peak memory of a device by its parts.

The peak of one process is linear in the batch: a fixed part and activations. It is fitted on the
measured batches; what a strategy adds or shards is counted in bytes of the weights.
"""

from __future__ import annotations

from ringside.estimate import sharded
from ringside.estimate.work import is_within_reach
from ringside.measurements import Description
from ringside.spec import RunSpec

WORKING_UNITS = 2
"""Units of FSDP that are gathered at once: the one that computes and the one ahead."""


def peaks(description: Description) -> dict[int, int]:
    """The measured peak in bytes by images; empty on a CPU."""
    return {p.batch: p.peak_bytes for p in description.profiles if p.peak_bytes is not None}


def line(description: Description) -> tuple[float, float] | None:
    """(fixed bytes, bytes per image), by least squares; None with fewer than two batches."""
    points = peaks(description)
    if len(points) < 2:
        return None
    mean_batch = sum(points) / len(points)
    mean_bytes = sum(points.values()) / len(points)
    across = sum((batch - mean_batch) ** 2 for batch in points)
    slope = sum((b - mean_batch) * (peak - mean_bytes) for b, peak in points.items()) / across
    return mean_bytes - slope * mean_batch, slope


def memory_parts(spec: RunSpec, description: Description) -> dict[str, int] | None:
    """Bytes of one device, by part; they add up to the peak.

    None where it was not measured, and for a batch farther outside the measured ones than a step is
    said for (`work.REACH`): allocators and convolutions choose other workspaces there.
    `other` is what the fit leaves beside weights, buffers and optimizer state: workspaces, inputs,
    16-bit copies of weights.
    """
    fitted = line(description)
    if fitted is None or not is_within_reach(peaks(description), spec.micro_batch):
        return None
    fixed_bytes, bytes_per_image = fitted
    weights, buffers = description.parameter_bytes, description.buffer_bytes
    optimizer = description.optimizer_state_bytes
    parts = {
        "parameters": weights,
        "buffers": buffers,
        "optimizer": optimizer,
        "activations": round(bytes_per_image * spec.micro_batch),
        "other": max(0, round(fixed_bytes) - weights - buffers - optimizer),
    }
    if spec.strategy == "fsdp" and spec.num_processes > 1:
        return parts | _sharded(spec, description)
    if spec.strategy == "ddp" and spec.num_processes > 1:
        parts["buckets"] = _reducible(description)
        # A gradient is a view of its bucket, or beside it.
        if not spec.training.gradient_as_bucket_view:
            parts["gradients"] = _reducible(description)
    elif spec.training.accumulation_steps > 1:
        # One micro-step's gradients lie there while the next one's activations grow.
        parts["gradients"] = _reducible(description)
    return parts


def _sharded(spec: RunSpec, description: Description) -> dict[str, int]:
    """A part of everything on each rank, and two gathered units with their gradients."""
    num = spec.num_processes
    gradients = next((p.gradients for p in description.profiles if p.gradients), ())
    backward_us = max((gradient.ready_us for gradient in gradients), default=0.0)
    units = sharded.units_of(gradients, backward_us)
    largest = sorted((unit.num_bytes for unit in units), reverse=True)[:WORKING_UNITS]
    return {
        "parameters": description.parameter_bytes // num,
        "optimizer": description.optimizer_state_bytes // num,
        "gradients": _reducible(description) // num,
        "gathered": 2 * sum(largest),
    }


def _reducible(description: Description) -> int:
    """Float32 bytes of all gradients; those of frozen weights are not there."""
    gradients = next((p.gradients for p in description.profiles if p.gradients), ())
    if not gradients:
        return description.parameter_bytes
    return 4 * sum(gradient.num_elements for gradient in gradients)
