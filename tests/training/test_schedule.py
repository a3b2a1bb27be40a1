"""The learning rate is a closed form of the step, whatever the number of processes."""

from __future__ import annotations

import math
import types

import pytest
import torch

from training.control import Control
from training.loop import Trainer
from training.order import TrainingOrder
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


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize("num_processes", [1, 2, 4])
def test_the_last_rate_does_not_depend_on_processes_or_micro_steps(num_processes, k, make_spec):
    """640 images in batches of 96 for 3 epochs: 18 steps, of which the first 3 warm up."""
    spec = make_spec(
        "single" if num_processes == 1 else "ddp",
        num_processes=num_processes,
        micro_batch=96 // (num_processes * k),
        training={"accumulation_steps": k, "learning_rate": 0.01, "base_batch": 24},
    )
    groups = [{}, {}]
    engine = types.SimpleNamespace(
        spec=spec, device=torch.device("cpu"), pipeline=None, num_replicas=num_processes,
        accelerator=types.SimpleNamespace(scaler=None),
        optimizer=types.SimpleNamespace(param_groups=groups),
    )  # fmt: skip
    trainer = Trainer(engine, TrainingOrder(spec, 640, 0), [], Control(0, 1), None, None)
    trainer.step = trainer.total_steps - 1
    trainer._set_learning_rate()
    expected = 0.01 * math.sqrt(96 / 24) * 0.5 * (1 + math.cos(math.pi * 14 / 15))
    assert [group["lr"] for group in groups] == pytest.approx([expected, expected], rel=1e-12)
