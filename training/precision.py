"""What fp16's loss scaler left out."""

from __future__ import annotations

import torch
from torch.amp import GradScaler


class SkippedSteps:
    """Counts optimizer steps that the loss scaler skipped because a gradient was not finite.

    A fused optimizer skips inside its kernel, so neither the scaler nor Accelerate's
    `step_was_skipped` sees it (huggingface/accelerate#4242). But the scale falls after a skipped
    step and only then; it is compared on the device, so that counting never waits for it.
    """

    def __init__(self, scaler: GradScaler | None) -> None:
        self.scaler = scaler if scaler is not None and scaler.is_enabled() else None
        self._last: torch.Tensor | float = 0.0
        self._count: torch.Tensor | int = 0
        self.begin()

    def begin(self) -> None:
        """Start an epoch's count."""
        self._count = 0
        if self.scaler is not None:
            # Until the first step the scaler has no tensor, and `get_scale` waits for nothing.
            scale = self._scale()
            self._last = self.scaler.get_scale() if scale is None else scale.clone()

    def step(self) -> None:
        """The scaler has been updated after an optimizer step."""
        scale = self._scale()
        if scale is not None:
            self._count = self._count + (scale < self._last).sum()
            self._last = scale.clone()

    @property
    def total(self) -> int | None:
        """Skipped steps since `begin`; None without a loss scaler. Waits for the device."""
        return int(self._count) if self.scaler is not None else None

    def _scale(self) -> torch.Tensor | None:
        return self.scaler._scale if self.scaler is not None else None
