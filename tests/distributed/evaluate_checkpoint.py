"""Launched by a test: evaluates a checkpoint on however many ranks the launcher starts.

    accelerate launch ... evaluate_checkpoint.py SPECS CHECKPOINT OUT

SPECS is a JSON list of specs, evaluated one after the other; OUT gets a list of results.

Each rank first shifts its BatchNorm statistics by its own number, less the mean of all: what the
evaluation averages must then be the checkpoint's own statistics again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import torch
from accelerate.state import AcceleratorState

from ringside.data import open_data
from ringside.events import Evaluated
from ringside.spec import RunSpec
from training.batchnorm import running_statistics
from training.checkpoint import load_weights
from training.control import Control
from training.engine import Engine
from training.evaluation import Evaluator
from training.input import Feed
from training.losses import make_loss
from training.model import make_model, make_optimizer
from training.observation import strategy_of


def main(specs_path: str, checkpoint: str, out: str) -> None:
    specs = msgspec.json.decode(Path(specs_path).read_bytes(), type=list[RunSpec])
    found = [evaluated(spec, Path(checkpoint)) for spec in specs]
    if torch.distributed.get_rank() == 0:
        Path(out).write_bytes(msgspec.json.encode(found))
    torch.distributed.destroy_process_group()


def evaluated(spec: RunSpec, checkpoint: Path) -> Evaluated | None:
    AcceleratorState._reset_state()  # Each spec has a strategy of its own.
    engine = Engine(spec)
    data = open_data(spec.data)
    model = make_model(spec, len(data.classes))
    load_weights(model, checkpoint)
    engine.loss = make_loss(data.task)
    engine.prepare(model, make_optimizer(spec, model))
    assert strategy_of(engine.model, engine.averager) == spec.strategy
    with torch.no_grad():
        for buffer in running_statistics(engine.plain):
            buffer += engine.rank - (engine.world - 1) / 2
    control = Control(engine.rank, engine.world)
    return Evaluator(engine, data, control, Feed(engine, data, control)).evaluate(1)


main(*sys.argv[1:])
