"""Small arrays on their way to the device."""

from __future__ import annotations

import numpy as np
import torch


def upload(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """The array on the device, copied on the current stream without waiting for it.

    Through pinned memory: copies from pageable memory may wait for the stream (CUDA runtime API,
    "API synchronization behavior").
    """
    tensor = torch.from_numpy(array)
    if device.type == "cuda":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
