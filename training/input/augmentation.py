"""Augmentation of whole batches on the device, with different parameters for every sample."""

from __future__ import annotations

import numpy as np
import torch

from training.input.upload import upload

GREY = (0.299, 0.587, 0.114)  # ITU-R BT.601 luma
MIX_STREAM = 1 << 62  # keeps the draws of mixing apart from those of the crops


def jitter(images: torch.Tensor, draws: torch.Tensor, strength: float) -> torch.Tensor:
    """Brightness, contrast and saturation by factors of 1 - strength to 1 + strength.

    `images` float [n, 3, H, W] in [0, 1], `draws` uniform [n, 3]. Each is a blend as in torchvision
    (`adjust_brightness`, `adjust_contrast`, `adjust_saturation`, in this order).
    """
    factors = 1 + strength * (2 * draws - 1)
    brightness, contrast, saturation = (factors[:, i].view(-1, 1, 1, 1) for i in range(3))
    images = (images * brightness).clamp_(0, 1)
    images = images.lerp(_grey(images).mean(dim=(2, 3), keepdim=True), 1 - contrast).clamp_(0, 1)
    return images.lerp(_grey(images), 1 - saturation).clamp_(0, 1)


def _grey(images: torch.Tensor) -> torch.Tensor:
    weights = torch.tensor(GREY, device=images.device, dtype=images.dtype).view(1, 3, 1, 1)
    return (images * weights).sum(dim=1, keepdim=True)


class Mixer:
    """Mixup and cutmix of a batch with itself in reverse order, each sample by its own share.

    Zhang et al. 2018 (arXiv:1710.09412); Yun et al. 2019 (arXiv:1905.04899). With both on, half of
    the batches get one and half the other. What is drawn follows from seed, epoch and the first
    sample of the batch, so a resumed run mixes as an uninterrupted one.
    """

    def __init__(self, seed: int, mixup: float, cutmix: float) -> None:
        self.seed, self.mixup, self.cutmix = seed, mixup, cutmix

    def __call__(
        self, images: torch.Tensor, targets: torch.Tensor, epoch: int, first: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Mixed images [n, 3, H, W] and targets [n, C], both float."""
        philox = np.random.Philox(key=[self.seed, MIX_STREAM | (epoch << 40) | first])
        rng = np.random.Generator(philox)
        cut = self.cutmix > 0 and (self.mixup == 0 or rng.random() < 0.5)
        if not cut and self.mixup == 0:
            return images, targets
        alpha = self.cutmix if cut else self.mixup
        device = images.device
        drawn = rng.beta(alpha, alpha, len(images)).astype(np.float32)
        share = upload(drawn, device)
        if cut:
            centres = upload(rng.random((len(images), 2), dtype=np.float32), device)
            keep, share = _windows(share, centres, images.shape[2], images.shape[3])
            images = torch.where(keep, images, images.flip(0))
        else:
            images = images.flip(0).lerp(images, share.view(-1, 1, 1, 1))
        return images, targets.flip(0).lerp(targets, share.view(-1, 1))


def _windows(
    share: torch.Tensor, centres: torch.Tensor, height: int, width: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Which pixels stay, bool [n, 1, H, W], and the share of them, exactly, [n]."""
    cut = (1 - share).sqrt()
    rows = torch.arange(height, device=share.device).view(1, -1) + 0.5
    columns = torch.arange(width, device=share.device).view(1, -1) + 0.5
    in_rows = (rows - centres[:, :1] * height).abs() < cut.view(-1, 1) * height / 2
    in_columns = (columns - centres[:, 1:] * width).abs() < cut.view(-1, 1) * width / 2
    keep = ~(in_rows.unsqueeze(2) & in_columns.unsqueeze(1)).unsqueeze(1)
    return keep, keep.float().mean(dim=(1, 2, 3))
