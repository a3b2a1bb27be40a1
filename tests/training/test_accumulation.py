"""Gradients of micro-steps, what a stop leaves behind, and the images that fill no step."""

from __future__ import annotations

import pytest
import torch
from timm.layers import freeze_batch_norm_2d

from training.control import Control
from training.order import TrainingOrder


def first_gradient(trainer) -> torch.Tensor:
    """All gradients as the optimizer gets them in the first step."""
    seen = []
    parameters = [p for p in trainer.engine.plain.parameters() if p.requires_grad]
    trainer.engine.optimizer.step = lambda: seen.append(
        torch.cat([p.grad.reshape(-1) for p in parameters])
    )
    trainer.order.steps_per_epoch = 1
    trainer.train_epoch(1)
    return seen[0]


@pytest.mark.parametrize("k", [2, 4])
def test_micro_steps_have_the_gradient_of_their_whole_batch(make_trainer, k):
    """With BatchNorm held, because that sees each micro-batch by itself."""
    settings = {"change": freeze_batch_norm_2d, "clip_norm": 0.0}
    whole = first_gradient(make_trainer(micro_batch=64, **settings))
    parts = first_gradient(make_trainer(micro_batch=64 // k, accumulation_steps=k, **settings))
    assert float((parts - whole).norm() / whole.norm()) < 1e-6


@pytest.mark.parametrize("k", [1, 4])
def test_a_stop_within_an_epoch_leaves_no_gradient_and_goes_on_exactly(
    make_trainer, k, monkeypatch
):
    settings = {"micro_batch": 64 // k, "accumulation_steps": k}
    unbroken = make_trainer(**settings)
    unbroken.train_epoch(1)
    broken = make_trainer(**settings)
    with monkeypatch.context() as patch:
        patch.setattr(Control, "take", lambda self, request: request == "stop" and broken.step == 3)
        assert broken.train_epoch(1) is None
    assert all(p.grad is None for p in broken.engine.plain.parameters())
    broken.train_epoch(1, first_step=3)
    for name, value in unbroken.engine.plain.state_dict().items():
        assert torch.equal(value, broken.engine.plain.state_dict()[name]), name


@pytest.mark.parametrize(("num_samples", "left"), [(640, 0), (641, 1), (703, 63), (64, 0)])
def test_the_rest_of_an_epoch_is_counted(make_spec, num_samples, left):
    order = TrainingOrder(make_spec("ddp", micro_batch=32), num_samples, 0)
    seen = sum(len(batch) for batch in order) * 2
    assert order.num_left_out == num_samples - seen == left
