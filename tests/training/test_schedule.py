"""The learning rate is a closed form of the step, whatever the number of processes."""

from __future__ import annotations

import math

import pytest
import torch

from training.schedule import learning_rate_at


def test_warm_up_then_half_a_cosine():
    rates = [
        learning_rate_at(step, peak=0.4, total_steps=100, warmup_steps=10) for step in range(100)
    ]
    assert rates[0] == pytest.approx(0.04)
    assert rates[9] == pytest.approx(0.4)
    assert rates[55] == pytest.approx(0.2)
    assert rates[99] == pytest.approx(0.2 * (1 + math.cos(math.pi * 89 / 90)))
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_without_warm_up_it_is_torchs_own_cosine():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.3)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40)
    for step in range(40):
        ours = learning_rate_at(step, peak=0.3, total_steps=40, warmup_steps=0)
        assert ours == pytest.approx(theirs.get_last_lr()[0], abs=1e-9)
        optimizer.step()
        theirs.step()
