"""A trainer as a session builds it, on the same data and feed, but with no run directory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import msgspec
import torch

from ringside.data import ImageData, open_data
from ringside.spec import RunSpec
from training.buffered import Buffered, buffered
from training.control import Control
from training.engine import Engine
from training.input import Feed, made_up
from training.loop import Trainer
from training.losses import training_loss
from training.model import make_model, make_optimizer
from training.observation import check
from training.order import Key, TrainingOrder


class Endless:
    """A training order that never comes to the end of its last epoch: no block holds a restart."""

    def __init__(self, order: TrainingOrder) -> None:
        self.order = order

    def __iter__(self) -> Iterator[list[Key]]:
        while True:
            self.order.epoch += 1
            yield from self.order


class Nowhere:
    """Takes what a trainer would write."""

    def write(self, _item: object) -> None:
        """Drop it."""


class Bench:
    """One rank's trainer and an endless stream of batches; `step()` is the trainer's own step.

    `synthetic` batches are made once and lie on the device. Raises SetupError where what came is
    not what the spec asks for, as a run does.
    """

    def __init__(self, spec: RunSpec, *, synthetic: bool) -> None:
        self.spec = spec
        self.engine = engine = Engine(spec)
        self.control = Control(engine.rank, engine.world, spec.training.timeout_s)
        data = open_data(spec.data, skip=frozenset(spec.data.skip))
        self.num_classes = len(data.classes)
        self.decoder: str | None = None
        order = TrainingOrder(spec, len(data.train), engine.rank)
        engine.loss = training_loss(data.task, spec.training, data.train.targets, engine.device)
        # What the weights are has no say in how long a step takes.
        fresh = msgspec.structs.replace(spec.training, pretrained=False)
        model = make_model(msgspec.structs.replace(spec, training=fresh), self.num_classes)
        model = engine.own_part(model)
        engine.prepare(model, make_optimizer(spec, model))
        check(spec, engine.observe())
        batches = self._batches(data, order, synthetic=synthetic)
        self.trainer = Trainer(engine, order, batches, self.control, Nowhere(), Nowhere())
        self.stream = iter(batches)
        engine.train_mode()

    def _batches(self, data: ImageData, order: TrainingOrder, *, synthetic: bool) -> Any:
        spec, engine = self.spec, self.engine
        if synthetic:
            return made_up(spec, self.num_classes, engine.device)
        feed = Feed(engine, data, self.control)
        self.decoder = feed.choice.decoder
        return feed.training(Endless(order))

    @property
    def buffered(self) -> Buffered:
        """What the input has made ahead of the steps at most."""
        return buffered(self.trainer.batches)

    def step(self) -> None:
        """One optimizer step; on a GPU it is issued and not waited for."""
        self.trainer.optimizer_step(self.stream)
        self.trainer.step += 1

    def close(self) -> None:
        """End the threads and workers of the input, and give the device's memory back.

        A thread that still prepared batches at the end of Python could bring the process down.
        """
        for part in (self.stream, self.trainer.batches):
            end = getattr(part, "close", None)
            if end is not None:
                end()
        del self.trainer, self.stream, self.engine
        gc.collect()  # Trainer, windows and DDP refer to each other.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
