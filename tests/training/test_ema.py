"""The moving average of the weights against torch's own, and what is scored and saved of it."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file
from torch.optim.swa_utils import AveragedModel

from training.checkpoint import full_weights
from training.control import Control
from training.resume import restore, training_state

DECAY = 0.8


def kept(step: int) -> float:
    """The share that the average keeps of itself in this step, from 1."""
    return min(DECAY, 1 - step ** (-2 / 3))


@pytest.fixture
def trainer(make_trainer):
    return make_trainer(micro_batch=64, ema_decay=DECAY)


def test_it_is_the_average_that_torch_computes(trainer, monkeypatch):
    """torch.optim.swa_utils with the warm-up's decay written out, in every step of an epoch."""
    engine, steps = trainer.engine, []
    theirs = AveragedModel(
        engine.plain,
        avg_fn=lambda averaged, current, _: (
            kept(steps[-1]) * averaged + (1 - kept(steps[-1])) * current
            if averaged.is_floating_point()
            else current
        ),
        use_buffers=True,
    )
    follow = engine.follow_weights

    def both(step):
        steps.append(step)
        theirs.update_parameters(engine.plain)
        follow(step)

    monkeypatch.setattr(engine, "follow_weights", both)
    trainer.train_epoch(1)
    assert steps == list(range(1, 11))
    average, raw = engine.ema.module.state_dict(), engine.plain.state_dict()
    assert sum(not torch.equal(average[name], raw[name]) for name in average) > 20
    for name, value in theirs.module.state_dict().items():
        torch.testing.assert_close(average[name], value, rtol=1e-5, atol=1e-6)


def save(trainer, folder):
    """The two files of a checkpoint that a resumed run reads."""
    engine, control = trainer.engine, Control(0, 1)
    weights = {name: value.contiguous() for name, value in full_weights(engine, control).items()}
    save_file(weights, folder / "model.safetensors")
    torch.save(training_state(engine, control, trainer.progress), folder / "training.pt")


def test_the_average_is_scored_and_saved_and_the_run_goes_on_exactly(make_trainer, tmp_path):
    """The checkpoint's weights are the average; those that train come back from training.pt."""
    trainer = make_trainer(micro_batch=64, epochs=2, ema_decay=DECAY)
    trainer.train_epoch(1)
    engine = trainer.engine
    assert engine.evaluated_module is engine.ema.module
    assert not engine.evaluated_module.training
    saved = full_weights(engine, Control(0, 1))
    average = engine.ema.module.state_dict()
    assert all(torch.equal(saved[name], average[name]) for name in average)
    save(trainer, tmp_path)
    again = make_trainer(micro_batch=64, epochs=2, ema_decay=DECAY)
    again.take_up(restore(again.engine, tmp_path))
    again.train_epoch(2)
    trainer.train_epoch(2)
    for one, other in (
        (engine.plain, again.engine.plain),
        (engine.ema.module, again.engine.ema.module),
    ):
        for name, value in one.state_dict().items():
            assert torch.equal(other.state_dict()[name], value), name


def test_weights_without_an_average_begin_one(make_trainer, tmp_path):
    """A run that was trained without it may go on with it, and the other way round."""
    before = make_trainer(micro_batch=64)
    before.train_epoch(1)
    save(before, tmp_path)
    after = make_trainer(micro_batch=64, ema_decay=DECAY)
    restore(after.engine, tmp_path)
    for module in (after.engine.plain, after.engine.ema.module):
        assert torch.equal(module.fc.weight, before.engine.plain.fc.weight)


def test_without_it_nothing_is_kept(make_trainer):
    engine = make_trainer().engine
    assert engine.ema is None
    assert engine.evaluated_module is engine.plain
    assert engine.observe().ema_decay is None


def test_the_average_is_observed(trainer):
    assert trainer.engine.observe().ema_decay == DECAY
