"""PowerSGD's bytes by torch's own rule."""

from __future__ import annotations

import pytest
import timm
import torch
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

from training.traffic import power_sgd_bytes


@pytest.mark.parametrize("rank", [1, 4, 32])
def test_it_agrees_with_torch(rank):
    model = timm.create_model("test_resnet", num_classes=16)
    expected = 0
    for weight in model.parameters():
        if weight.dim() < 2:
            expected += weight.numel()
            continue
        rows, columns = weight.shape[0], weight.numel() // weight.shape[0]
        compress, whole, small = powerSGD_hook._should_compress(rows, columns, rank, 2)
        expected += small if compress else whole
    assert power_sgd_bytes(model.parameters(), rank) == 4 * expected


def test_a_matrix_by_hand():
    assert power_sgd_bytes([torch.zeros(100, 50)], 2) == 4 * 2 * (100 + 50)
    assert power_sgd_bytes([torch.zeros(100)], 2) == 4 * 100
    assert power_sgd_bytes([torch.zeros(3, 3)], 2) == 4 * 9
