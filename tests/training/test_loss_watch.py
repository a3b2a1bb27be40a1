"""A loss that is not finite: which step, which rank, which label."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ringside.errors import RingsideError
from training.loss_watch import NEVER, LossWatch


def test_a_label_that_breaks_first_is_named(make_trainer):
    """Weights of one output become infinite before step 4; the loss is exchanged later."""
    trainer = make_trainer(micro_batch=64)
    inner = trainer.engine.optimizer.step

    def step():
        inner()
        if trainer.step == 2:
            with torch.no_grad():
                trainer.engine.plain.fc.weight[5] = float("inf")

    trainer.engine.optimizer.step = step
    trainer.control.due = lambda: trainer.step == 6
    with pytest.raises(RingsideError) as failed:
        trainer.train_epoch(1)
    name = trainer.windows.classes[5]
    assert f"first at step 4 on rank 0 in the class {name!r} (precision fp32" in str(failed.value)


def see(watch, losses, first=1, k=1):
    for number, loss in enumerate(losses):
        logits = torch.zeros(2, 3)
        watch.see(first + number // k, torch.tensor(loss), logits, torch.zeros(2, 3))


def test_what_was_counted_is_forgotten(make_spec):
    watch = LossWatch(make_spec("single", training={"accumulation_steps": 2}))
    see(watch, [1.0, 1.0, 2.0, 2.0, 3.0, float("nan")], k=2)
    watch.forget(1)
    assert watch.first_fault()[0] == 3
    watch.forget(5)
    assert watch.first_fault()[0] == NEVER


@pytest.mark.parametrize(
    ("faults", "rank", "step"),
    [
        ([(NEVER, -1), (9, -1)], 1, 9),
        ([(12, -1), (9, -1), (9, 2)], 1, 9),
        ([(NEVER, -1), (NEVER, -1)], 1, 30),
    ],
)
def test_the_earliest_rank_is_named(make_spec, faults, rank, step):
    """Reduced gradients carry a fault to every rank one step later; with no trace, the window's."""

    class TwoRanks:
        def gather(self, _row):
            return np.array(faults, dtype=float)

    error = LossWatch(make_spec("ddp", precision="bf16")).error(
        TwoRanks(), step=30, learning_rate=0.1, bad_ranks=np.array([1])
    )
    assert f"step {step} on rank {rank} (precision bf16, learning rate 0.1)" in str(error)
    assert "train in fp32" in str(error)


@pytest.mark.parametrize(
    ("logits", "targets", "label"),
    [
        ([[0.0, float("inf"), 0.0]], [[0.0, 0.0, 0.0]], 1),
        ([[0.0, 0.0, 0.0]], [[0.0, 0.0, float("nan")]], 2),
        ([[float("nan")] * 3], [[0.0, 0.0, 0.0]], -1),
        ([[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]], -1),
    ],
)
def test_a_class_is_named_only_where_it_stands_out(make_spec, logits, targets, label):
    watch = LossWatch(make_spec("single"))
    watch.see(1, torch.tensor(float("nan")), torch.tensor(logits), torch.tensor(targets))
    assert watch.first_fault() == (1, label)


def test_the_outputs_of_cuda_graphs_are_not_kept(make_spec):
    settings = {"compile": True, "compile_mode": "reduce-overhead"}
    spec = make_spec("single", training=settings, device="cuda")
    watch = LossWatch(spec)
    logits = torch.tensor([[float("inf"), 0.0]])
    watch.see(1, torch.tensor(float("nan")), logits, torch.zeros(1, 2))
    logits.zero_()
    assert watch.first_fault() == (1, -1)
