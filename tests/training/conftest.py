"""A trainer on one CPU process, built as a session builds it, on the small product pictures."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
from accelerate.state import AcceleratorState

from ringside.data import open_data
from ringside.spec import DataSpec
from training.control import Control
from training.engine import Engine
from training.input import Batches
from training.input.loading import Crop, Pictures, make_loader
from training.input.normalisation import IMAGENET
from training.loop import Trainer
from training.losses import training_loss
from training.model import make_model, make_optimizer
from training.order import TrainingOrder


class Lines:
    """Keeps what the loop writes."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    def write(self, item: Any) -> None:
        self.written.append(item)


@pytest.fixture
def make_trainer(make_spec) -> Callable[..., Trainer]:
    """`make_trainer(micro_batch=32, ema_decay=0.9)`: settings of the training part by name.

    `change(model)` may alter the model before anything is built around it.
    """

    def make(
        *, micro_batch: int = 64, epochs: int = 1, model: str = "test_resnet",
        change: Callable[[Any], Any] = lambda _model: None, **training: Any,
    ) -> Trainer:  # fmt: skip
        AcceleratorState._reset_state(reset_partial_state=True)
        spec = make_spec(
            "single", micro_batch=micro_batch, epochs=epochs, model=model, training=training
        )
        data = open_data(DataSpec(source="products", profile="ci"))
        engine = Engine(spec)
        engine.loss = training_loss(data.task, spec.training, data.train.targets, engine.device)
        net = make_model(spec, len(data.classes))
        change(net)
        engine.prepare(net, make_optimizer(spec, net))
        engine.train_mode()
        order = TrainingOrder(spec, len(data.train), 0)
        pictures = Pictures(data.train, Crop(32, 0, True, 0.7), decode_here=True)
        loader = make_loader(pictures, order, num_workers=0, pin=False)
        batches = Batches(loader, engine.device, IMAGENET)
        trainer = Trainer(engine, order, batches, Control(0, 1), Lines(), Lines())
        trainer.windows.classes = data.classes
        return trainer

    return make


@pytest.fixture
def one_rank() -> types.SimpleNamespace:
    """The side group of a run with one process."""
    return types.SimpleNamespace(gather=Control(0, 1).gather)
