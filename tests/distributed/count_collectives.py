"""Launched by a test: trains a few steps on random pictures and writes what was counted.

    accelerate launch ... count_collectives.py SPECS OUT

SPECS is a JSON list of specs with two processes, trained one after the other; OUT gets a list of
[collectives per step, buckets that DDP rebuilt].
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import torch

from ringside.spec import RunSpec
from training.control import Control
from training.engine import Engine
from training.input import SyntheticBatches
from training.loop import Trainer
from training.losses import make_loss
from training.model import make_model, make_optimizer
from training.order import TrainingOrder

NUM_STEPS, NUM_CLASSES = 4, 100


class Nowhere:
    """Takes what the loop writes."""

    def write(self, _item: object) -> None:
        """Drop it."""


def main(specs_path: str, out: str) -> None:
    specs = msgspec.json.decode(Path(specs_path).read_bytes(), type=list[RunSpec])
    found = [counted(spec) for spec in specs]
    if torch.distributed.get_rank() == 0:
        Path(out).write_bytes(msgspec.json.encode(found))
    torch.distributed.destroy_process_group()


def counted(spec: RunSpec) -> tuple[float | None, int]:
    engine = Engine(spec)
    engine.loss = make_loss("multi_label")
    model = make_model(spec, NUM_CLASSES)
    engine.prepare(model, make_optimizer(spec, model))
    size = spec.data.image_size
    batches = SyntheticBatches(spec.micro_batch, NUM_CLASSES, size, engine.device)
    order = TrainingOrder(spec, NUM_STEPS * spec.global_batch, engine.rank)
    control = Control(engine.rank, engine.world)
    # Between steps a checkpoint averages the statistics, which is not a step's collective.
    trainer = Trainer(engine, order, batches, control, Nowhere(), Nowhere())
    trainer.save_now = lambda _progress: engine.average_statistics()
    trained = trainer.train_epoch(1)
    assert trained is not None
    facts = getattr(engine.model, "_get_ddp_logging_data", dict)()
    sizes = str(facts.get("rebuilt_bucket_sizes", ""))
    return trained.collectives_per_step, len([size for size in sizes.split(",") if size.strip()])


main(*sys.argv[1:])
