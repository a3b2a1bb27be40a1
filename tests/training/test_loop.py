"""Accumulation is exact, the clock adds up, and a loss that is not finite ends the run."""

from __future__ import annotations

import time

import msgspec
import pytest
import torch
from accelerate.state import AcceleratorState

from ringside.data import open_data
from ringside.errors import RingsideError
from ringside.events import WindowTimed, decode_lines, encode
from ringside.spec import DataSpec
from training.control import Control
from training.engine import Engine
from training.input import Batches
from training.input.loading import Crop, Pictures, make_loader
from training.input.normalisation import IMAGENET
from training.loop import Trainer
from training.losses import make_loss
from training.order import TrainingOrder
from training.windows import RankWindow


class Recorder:
    """Keeps what the loop writes: events, or lines of a rank's own log."""

    def __init__(self):
        self.written = []

    def write(self, item):
        self.written.append(item)


@pytest.fixture
def train(make_spec):
    """One epoch on one CPU process with a model without BatchNorm; returns trainer and result."""

    def run(*, micro_batch, k, model=None):
        AcceleratorState._reset_state(reset_partial_state=True)
        spec = make_spec(
            "single",
            micro_batch=micro_batch,
            training={
                "accumulation_steps": k,
                "optimizer": "sgd",
                "learning_rate_rule": "none",
                "learning_rate": 0.1,
            },
            epochs=1,
        )
        data = open_data(DataSpec(source="products", profile="ci"))
        engine = Engine(spec)
        engine.loss = make_loss(data.task)
        torch.manual_seed(0)
        net = model or torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, stride=4), torch.nn.GELU(), torch.nn.Flatten(),
            torch.nn.Linear(8 * 64, len(data.classes)),
        )  # fmt: skip
        engine.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1))
        order = TrainingOrder(spec, len(data.train), 0)
        images = Pictures(data.train, Crop(32, 0, True, 0.7), decode_here=True)
        loader = make_loader(images, order, num_workers=0, pin=False)
        batches = Batches(loader, engine.device, IMAGENET)
        trainer = Trainer(engine, order, batches, Control(0, 1), Recorder(), Recorder())
        return trainer, trainer.train_epoch(1)

    return run


def test_four_micro_steps_are_one_large_step(train):
    whole, _ = train(micro_batch=64, k=1)
    parts, _ = train(micro_batch=16, k=4)
    for a, b in zip(whole.engine.plain.parameters(), parts.engine.plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_the_epoch_adds_up(train):
    trainer, result = train(micro_batch=32, k=1)
    assert decode_lines(encode(result)) == [result]
    assert result.num_samples == 640
    assert result.num_optimizer_steps == 20
    assert result.samples_per_s == pytest.approx(640 / result.epoch_time_s)
    windows = [event for event in trainer.writer.written if isinstance(event, WindowTimed)]
    assert sum(window.num_steps for window in windows) == 20
    assert windows[-1].step == 20
    busy_s = sum(window.step_ms * window.num_steps for window in windows) / 1000
    assert busy_s == pytest.approx(result.epoch_time_s, rel=0.05)
    for window in windows:
        parts = window.data_ms + window.forward_ms + window.backward_ms + window.optimizer_ms
        assert 0 < parts <= window.step_ms * 1.001
    mean = sum(window.train_loss * window.num_steps for window in windows) / 20
    assert result.train_loss == pytest.approx(mean)
    lines = [
        msgspec.json.decode(line, type=RankWindow) for line in trainer.windows.rank_log.written
    ]
    assert sum(line.num_steps for line in lines) == 20


def test_a_loss_that_is_not_finite_ends_the_run_with_advice(train):
    class Exploding(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((16,), float("nan")))

        def forward(self, images):
            return self.weight.expand(len(images), 16)

    with pytest.raises(RingsideError, match=r"not a finite number.*lower the learning rate"):
        train(micro_batch=32, k=1, model=Exploding())


def test_a_requested_checkpoint_is_not_training_time(train, monkeypatch):
    """What lies between the time of the epoch and the time that passed is at least the saving."""
    monkeypatch.setattr(Control, "take", lambda self, request: request == "checkpoint")
    trainer_init = Trainer.__init__

    train_epoch = Trainer.train_epoch
    saved, passed_s = [], []

    def save_slowly(progress):
        saved.append(progress)
        time.sleep(0.2)

    def slow_saver(self, *arguments):
        trainer_init(self, *arguments)
        self.save_now = save_slowly

    def timed(self, epoch):
        begin = time.perf_counter()
        result = train_epoch(self, epoch)
        passed_s.append(time.perf_counter() - begin)
        return result

    monkeypatch.setattr(Trainer, "__init__", slow_saver)
    monkeypatch.setattr(Trainer, "train_epoch", timed)
    _, slow = train(micro_batch=32, k=1)
    assert len(saved) >= 1
    assert passed_s[0] - slow.epoch_time_s >= 0.2 * len(saved)


def test_the_shells_accumulation_does_not_divide_the_loss_again(train, monkeypatch):
    plain, _ = train(micro_batch=32, k=1)
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4")
    again, _ = train(micro_batch=32, k=1)
    assert again.engine.accelerator.gradient_accumulation_steps == 1
    for a, b in zip(plain.engine.plain.parameters(), again.engine.plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
