"""How many bytes a strategy hands to reduction, where that is not simply elements times size."""

from __future__ import annotations

from collections.abc import Iterable

import torch

MIN_COMPRESSION_RATE = 2
FLOAT_BYTES = 4
DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}


def reduced_bytes(weights: Iterable[torch.Tensor], reduce_dtype: str, rank: int) -> int:
    """Bytes per optimizer step of a reduction in fp32, fp16, bf16 or power_sgd (of `rank`)."""
    if reduce_dtype == "power_sgd":
        return power_sgd_bytes(weights, rank)
    return DTYPE_BYTES[reduce_dtype] * sum(weight.numel() for weight in weights)


def power_sgd_bytes(weights: Iterable[torch.Tensor], rank: int) -> int:
    """Bytes per optimizer step of PowerSGD after its start step (float32 factors).

    An n x m matrix travels as P (n x r) and Q (m x r) when that is less than half of it; vectors
    and small matrices travel whole (torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook).
    """
    return FLOAT_BYTES * sum(_elements(weight, rank) for weight in weights)


def _elements(weight: torch.Tensor, rank: int) -> int:
    rows = weight.shape[0] if weight.dim() > 1 else 1
    columns = weight.numel() // rows
    rank = min(rows, columns, rank)
    compressed = (rows + columns) * rank
    if weight.dim() > 1 and compressed * MIN_COMPRESSION_RATE < weight.numel():
        return compressed
    return weight.numel()
