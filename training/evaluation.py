"""Scores of the whole validation split, every sample exactly once, for any number of processes."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from ringside.class_scores import EpochClasses
from ringside.data import ImageData
from ringside.errors import SetupError
from ringside.events import Evaluated
from ringside.predictions import Predictions
from ringside.scores import score
from ringside.words import say
from training.control import Control
from training.input import Feed
from training.losses import make_loss
from training.model import probabilities
from training.order import evaluation_batches

BATCH = {"cpu": 32, "cuda": 256}
MAX_PIXELS = 256 * 224 * 224
"""Of a batch on a GPU. Neither depends on the number of processes, so the scores do not either."""


class Evaluator:
    """Evaluates one rank's share of fixed batches and scores the gathered whole on rank 0."""

    def __init__(self, engine: Any, data: ImageData, control: Control, feed: Feed) -> None:
        self.engine, self.data, self.control = engine, data, control
        by_pixels = max(1, MAX_PIXELS // engine.spec.data.image_size**2)
        size = min(BATCH[engine.device.type], by_pixels)
        # A pipeline's stages pass on the same batches.
        rank, world = (engine.rank, engine.world) if engine.pipeline is None else (0, 1)
        mine = evaluation_batches(len(data.val), size, rank, world)
        self.batches = feed.evaluation(mine)
        self.num_trained: list[int] = data.train.targets.sum(axis=0, dtype=np.int64).tolist()
        self.last: Predictions | None = None
        self.classes: EpochClasses | None = None
        self.num_rounds = len(evaluation_batches(len(data.val), size, 0, world))

    def evaluate(self, epoch: int) -> Evaluated | None:
        """The scores on every rank; None when a stop was agreed on the way.

        Rank 0 keeps the predictions behind them in `last` and the scores by class in `classes`.
        """
        begin = time.perf_counter()
        self.engine.average_statistics()
        share = self._predict()
        if share is None:
            return None
        shares = self.control.collect(share)
        result = self._score(shares, epoch, begin) if shares is not None else None
        return self.control.share(result)

    @torch.inference_mode(False)
    @torch.no_grad()
    def _predict(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(indices [n] int64, logits [n, C] float32) of this rank.

        Under FSDP a forward is a collective, so a rank that has run out of batches runs on zeros.
        """
        module = self.engine.evaluated_module
        indices, logits = [], []
        batches = iter(self.batches)
        self.control.restart()
        self.engine.plain.eval()
        try:
            for number in range(self.num_rounds):
                self.control.mark.batch = number + 1
                self.control.mark.enter("data")
                batch = next(batches, None)
                self.control.mark.enter("evaluate")
                if batch is not None:
                    images, _targets, index = batch
                    with self.engine.autocast():
                        logits.append(module(images).float().cpu())
                    indices.append(index)
                elif self.engine.spec.strategy == "fsdp":
                    self._idle_forward(module)
                if self.control.due():
                    self.control.exchange()
                    if self.control.take("stop"):
                        return None
        finally:
            self.engine.train_mode()
        num_classes = len(self.data.classes)
        passed_on = self.engine.pipeline is not None and not self.engine.pipeline.last
        if not indices or passed_on:
            return np.empty(0, np.int64), np.empty((0, num_classes), np.float32)
        return torch.cat(indices).numpy(), torch.cat(logits).numpy()

    def _idle_forward(self, module: torch.nn.Module) -> None:
        size = self.engine.spec.data.image_size
        with self.engine.autocast():
            module(torch.zeros(1, 3, size, size, device=self.engine.device))

    def _score(self, shares: list[Any], epoch: int, begin: float) -> Evaluated:
        indices = np.concatenate([share[0] for share in shares])
        gathered = np.concatenate([share[1] for share in shares])
        if not np.array_equal(np.sort(indices), np.arange(len(self.data.val))):
            raise SetupError(say("refused.evaluation"))
        logits = torch.from_numpy(gathered[np.argsort(indices)])
        targets = self.data.val.targets
        task = self.data.task
        predicted = probabilities(logits, task).numpy()
        scores = score(predicted, targets, self.data.classes, task, num_trained=self.num_trained)
        self.last = Predictions(epoch, task, predicted, targets, self.num_trained)
        self.classes = EpochClasses(
            epoch=epoch,
            task=task,
            num_evaluated=scores.num_evaluated,
            threshold=scores.threshold,
            classes=tuple(scores.per_class),
        )
        loss = make_loss(task)(logits, torch.from_numpy(targets).float())
        return Evaluated(
            epoch=epoch,
            num_evaluated=scores.num_evaluated,
            evaluation_time_s=time.perf_counter() - begin,
            val_loss=float(loss),
            auc_macro=scores.auc_macro,
            num_auc_classes=scores.num_auc_classes,
            num_classes=len(self.data.classes),
            undefined_classes=tuple(scores.undefined_classes),
            untrained_classes=tuple(scores.untrained_classes),
            f1_macro=scores.f1_macro,
            f1_micro=scores.f1_micro,
            map_macro=scores.map_macro,
            accuracy=scores.accuracy,
            hamming_loss=scores.hamming_loss,
            f1_macro_tuned=scores.f1_macro_tuned,
            threshold=scores.threshold,
        )
