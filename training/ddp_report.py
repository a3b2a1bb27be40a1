"""What DDP says about itself: its buckets, and the spans that it samples.

`_get_ddp_logging_data` is torch's own and private (torch 2.11 to 2.14): whatever is missing is
None, and whatever fails is no report.
"""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ringside.events import DdpReported


def ddp_report(model: nn.Module, *, epoch: int, step: int) -> DdpReported | None:
    """The report of a DDP model after `step` optimizer steps; None for any other model."""
    if not isinstance(model, DistributedDataParallel):
        return None
    try:
        data = dict(model._get_ddp_logging_data())
    except Exception:  # Private: a report is no reason to stop a run.
        return None
    return DdpReported(
        epoch=epoch,
        step=step,
        num_iterations=_whole(data.get("iteration")),
        bucket_bytes=_sizes(data.get("bucket_sizes")),
        rebuilt_bucket_bytes=_sizes(data.get("rebuilt_bucket_sizes")),
        has_rebuilt_buckets=_truth(data.get("has_rebuilt_buckets")),
        find_unused_parameters=_truth(data.get("find_unused_parameters")),
        unused_parameter_bytes=_whole(data.get("unused_parameter_size")),
        forward_span_ms=_ms(data.get("avg_forward_compute_time")),
        backward_span_ms=_ms(data.get("avg_backward_compute_time")),
        communication_span_ms=_ms(data.get("avg_backward_comm_time")),
        overlap_span_ms=_ms(data.get("avg_backward_compute_comm_overlap_time")),
    )


def _sizes(value: Any) -> tuple[int, ...]:
    """Bytes of each bucket from "7082496, 6563840"; empty where there are none."""
    parts = str(value or "").split(",")
    return tuple(int(part) for part in parts if part.strip().isdecimal())


def _whole(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _truth(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool | int) else None


def _ms(value: Any) -> float | None:
    """Milliseconds from torch's nanoseconds; None where it has not sampled yet (0)."""
    return value / 1e6 if type(value) is int and value > 0 else None
