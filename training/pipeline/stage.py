"""What one rank computes: its part of the model, and the form in which tensors cross a border."""

from __future__ import annotations

import torch
from torch import nn


class Stage(nn.Module):
    """A part of the model in the preset's precision; takes and gives what travels.

    Ranks send memory, not tensors, so both sides have to agree on its layout. With channels_last
    weights [n, H, W, C] travels, which is how the values lie already: no side copies anything.
    """

    def __init__(
        self, model: nn.Module, *, first: bool, last: bool, channels_last: bool,
        device: torch.device, dtype: torch.dtype | None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.model, self.first, self.last = model, first, last
        self.channels_last, self.device, self.dtype = channels_last, device, dtype

    @property
    def travel_dtype(self) -> torch.dtype:
        """Activations travel in the type in which they are computed."""
        return self.dtype or torch.float32

    @property
    def layout(self) -> torch.memory_format:
        """Of the images, whatever the feed gives: that of the weights."""
        return torch.channels_last if self.channels_last else torch.contiguous_format

    def travel_shape(self, border: torch.Size, num_images: int | None = None) -> torch.Size:
        """The shape in which a border [n, C, H, W] travels, for its own or another n."""
        n, channels, height, width = border
        n = n if num_images is None else num_images
        order = (height, width, channels) if self.channels_last else (channels, height, width)
        return torch.Size((n, *order))

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """Images or what the stage before sent; returns what to send, or float32 logits."""
        if self.channels_last and not self.first:
            values = values.permute(0, 3, 1, 2)
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None):
            values = self.model(values)
        if self.last:
            return values.float()
        if self.channels_last:
            values = values.permute(0, 2, 3, 1)
        return values.to(self.travel_dtype).contiguous()
