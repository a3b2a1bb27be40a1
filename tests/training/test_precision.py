"""Steps that the loss scaler skipped, with fused optimizers too."""

from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from accelerate.state import AcceleratorState

from training.precision import SkippedSteps

BAD = {2, 3, 7}


@pytest.fixture
def optimizer_and_scaler(request):
    """Accelerate's own pair, on the CPU: the scaler's logic is the same there."""
    AcceleratorState._reset_state(reset_partial_state=True)
    Accelerator(cpu=True)
    weight = torch.nn.Parameter(torch.ones(4))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
    kind, fused = request.param
    optimizer = AcceleratedOptimizer(kind([weight], lr=0.1, fused=fused), scaler=scaler)
    return weight, optimizer, scaler


@pytest.mark.parametrize(
    "optimizer_and_scaler",
    [(kind, fused) for kind in (torch.optim.AdamW, torch.optim.SGD) for fused in (False, True)],
    indirect=True,
)
@pytest.mark.parametrize("clip", [False, True])
def test_skipped_steps_are_counted(optimizer_and_scaler, clip):
    """The scale also grows in between, after three good steps."""
    weight, optimizer, scaler = optimizer_and_scaler
    skipped, still = SkippedSteps(scaler), set()
    for step in range(10):
        before = weight.detach().clone()
        scaler.scale(weight.sum() * (float("inf") if step in BAD else 1.0)).backward()
        if clip:
            scaler.unscale_(optimizer.optimizer)
        optimizer.step()
        optimizer.zero_grad()
        skipped.step()
        still |= {step} if torch.equal(before, weight) else set()
    assert still == BAD
    assert skipped.total == len(BAD)
    assert scaler.get_scale() > 2.0**10 / 2 ** len(BAD)
    skipped.begin()
    assert skipped.total == 0


@pytest.mark.parametrize("scaler", [None, torch.amp.GradScaler("cpu", enabled=False)])
def test_without_a_scaler_there_is_no_number(scaler):
    skipped = SkippedSteps(scaler)
    skipped.step()
    assert skipped.total is None


def test_an_epoch_in_fp32_records_none(make_trainer):
    assert make_trainer(micro_batch=128).train_epoch(1).skipped_steps is None
