"""Ranks that train alone: saves and stops wait for an averaging; these are counted in steps."""

from __future__ import annotations

import pytest

from training.control import Control
from training.weight_averaging import WeightAverager

EVERY = 3


@pytest.fixture
def trainer(make_trainer):
    """Ten steps, an averaging after each third, saves asked for after the fourth and the eighth."""
    trainer = make_trainer(micro_batch=64, save_every_steps=4)
    trainer.engine.averager = WeightAverager(trainer.engine.plain, 1, EVERY)
    return trainer


def test_a_save_waits_for_the_next_averaging(trainer):
    saved = []
    trainer.save_now = lambda progress: saved.append(progress.step)
    trainer.train_epoch(1)
    assert saved == [6, 9]


def test_a_stop_waits_for_the_next_averaging(trainer, monkeypatch):
    monkeypatch.setattr(
        Control, "take", lambda self, request: request == "stop" and trainer.step >= 4
    )
    assert trainer.train_epoch(1) is None
    assert trainer.step == 6


def test_averagings_are_counted_from_the_first_step_of_all(trainer, monkeypatch):
    """Also in a run that begins in the middle, so it averages where the whole run does."""
    averaged = []
    monkeypatch.setattr(WeightAverager, "average", lambda self: averaged.append(trainer.step + 1))
    trainer.step = 4
    trainer.train_epoch(1, first_step=4)
    assert averaged == [6, 9, 11]  # the last is the epoch's own
