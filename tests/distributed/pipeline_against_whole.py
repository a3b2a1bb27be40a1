"""Launched by a test: a pipeline of as many stages as ranks against the whole model on each rank.

    accelerate launch ... pipeline_against_whole.py OUT

Writes the largest relative difference of each quantity, for each variant, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import timm
import torch
from torch import distributed, nn
from torch.nn.utils import clip_grad_norm_

from ringside.spec import AccelerateSettings, DataSpec, RunSpec, TrainingSettings
from training.control import Control
from training.pipeline import Pipeline
from training.pipeline.state import load_own, whole_optimizer_state, whole_weights

CLASSES, SIZE, MICRO_BATCH, MICRO_BATCHES, ACCUMULATION = 7, 24, 3, 4, 2
PARTS = MICRO_BATCHES * ACCUMULATION
STEPS, MAX_NORM, UNEVEN = 3, 0.1, 5
CPU = torch.device("cpu")
VARIANTS = {"channels_last": (True, "no"), "contiguous": (False, "no"), "bf16": (True, "bf16")}


def spec_of(world: int, channels_last: bool, precision: str) -> RunSpec:
    return RunSpec(
        preset="model_parallel",
        accelerate=AccelerateSettings(distributed_type="MULTI_GPU", mixed_precision=precision),
        training=TrainingSettings(
            parallelism="pipeline", pipeline_micro_batches=MICRO_BATCHES,
            accumulation_steps=ACCUMULATION, channels_last=channels_last,
        ),
        data=DataSpec(source="products", image_size=SIZE),
        model="test_resnet",
        global_batch=MICRO_BATCH * PARTS,
        num_processes=world,
        device="cpu",
    )  # fmt: skip


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)


def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.binary_cross_entropy_with_logits(logits.float(), targets)


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).norm() / b.double().norm().clamp_min(1e-12))


def furthest(stage: nn.Module, whole: nn.Module) -> float:
    """The largest relative difference of this stage's gradients to the whole model's."""
    theirs = dict(whole.named_parameters())
    return max(relative(p.grad, theirs[name].grad) for name, p in stage.named_parameters())


class Comparison:
    """One variant: the whole model and this rank's stage, from equal weights on equal batches."""

    def __init__(self, control: Control, channels_last: bool, precision: str) -> None:
        self.control = control
        self.spec = spec_of(control.world, channels_last, precision)
        self.dtype = {"no": None, "bf16": torch.bfloat16}[precision]
        self.generator = torch.Generator().manual_seed(1)
        self.whole = self.make(seed=0)
        self.model, self.pipeline = self.cut(seed=0)
        self.whole_optimizer = optimizer_of(self.whole)
        self.optimizer = optimizer_of(self.model)
        self.found: dict[str, float] = {}

    def make(self, seed: int) -> nn.Module:
        torch.manual_seed(seed)
        model = timm.create_model(self.spec.model, num_classes=CLASSES)
        layout = torch.channels_last if self.spec.channels_last else torch.contiguous_format
        return model.to(memory_format=layout)

    def cut(self, seed: int) -> tuple[nn.Module, Pipeline]:
        model = self.make(seed)
        pipeline = Pipeline(self.spec, model, self.control.rank, CPU, self.dtype)
        pipeline.prepare(loss)
        return model, pipeline

    def forward_whole(self, images: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", self.dtype, enabled=self.dtype is not None):
            return self.whole(images)

    def step_whole(self, images: torch.Tensor, targets: torch.Tensor) -> float:
        """On one device: micro-batches one after the other, gradients added up."""
        total = 0.0
        for part, wanted in zip(images.chunk(PARTS), targets.chunk(PARTS), strict=True):
            value = loss(self.forward_whole(part), wanted)
            (value / PARTS).backward()
            total += value.item()
        return total / PARTS

    def step_pipeline(self, images: torch.Tensor, targets: torch.Tensor) -> float:
        marks: list[int] = []
        losses = [
            self.pipeline.step(part, wanted, lambda: marks.append(1)).item()
            for part, wanted in zip(images.chunk(2), targets.chunk(2), strict=True)
        ]
        assert len(marks) == ACCUMULATION
        return sum(losses) / ACCUMULATION

    def train(self) -> None:
        for step in range(STEPS):
            images = torch.randn(self.spec.global_batch, 3, SIZE, SIZE, generator=self.generator)
            shape = (self.spec.global_batch, CLASSES)
            targets = torch.randint(0, 2, shape, generator=self.generator).float()
            expected = self.step_whole(images, targets)
            mean = self.step_pipeline(images, targets)
            self.found["loss"] = abs(mean / expected - 1) if self.pipeline.last else 0.0
            self.found["gradients"] = furthest(self.model, self.whole)
            if step == 0:  # Before rounding grows: 16 bit has to be exact here too.
                self.found |= {f"first_{name}": value for name, value in self.found.items()}
            norm = clip_grad_norm_(self.whole.parameters(), MAX_NORM)
            self.found["norm"] = relative(self.pipeline.clip_gradients(MAX_NORM), norm)
            for optimizer in (self.whole_optimizer, self.optimizer):
                optimizer.step()
                optimizer.zero_grad()

    def evaluate(self, pipeline: Pipeline) -> float:
        """A batch that is not a multiple of anything, after training."""
        pipeline.model.eval()
        self.whole.eval()
        images = torch.randn(UNEVEN, 3, SIZE, SIZE, generator=self.generator)
        with torch.no_grad():
            logits = pipeline.logits(images if pipeline.first else torch.empty(UNEVEN, 3, 0, 0))
            expected = self.forward_whole(images).float()
        if pipeline.last:
            return relative(logits, expected)
        assert logits.shape == (UNEVEN, 0)
        return 0.0

    def state(self) -> None:
        """Gathered under timm's names, as one model's; and dealt to a fresh pipeline again."""
        state = whole_optimizer_state(self.model, self.optimizer, self.control)
        weights = whole_weights(self.model, self.control)
        if self.control.rank == 0:
            reference = self.whole.state_dict()
            assert weights.keys() == reference.keys()
            self.found["weights"] = max(relative(weights[n], reference[n]) for n in reference)
            names = {name for name, _ in self.whole.named_parameters()}
            assert set(state["state"]) == names
            assert sorted(n for g in state["param_groups"] for n in g["params"]) == sorted(names)
        weights, state = self.control.share((weights, state))
        fresh, pipeline = self.cut(seed=5)
        optimizer = optimizer_of(fresh)
        load_own(fresh, optimizer, weights, state)
        for a, b in zip(self.model.parameters(), fresh.parameters(), strict=True):
            before, after = self.optimizer.state[a], optimizer.state[b]
            assert torch.equal(a, b)
            assert all(torch.equal(before[key], after[key]) for key in before)
        self.found["restored_logits"] = self.evaluate(pipeline)


def compare(control: Control, channels_last: bool, precision: str) -> dict[str, float]:
    comparison = Comparison(control, channels_last, precision)
    counts = comparison.pipeline.stage_parameters()
    assert sum(counts) == comparison.pipeline.num_parameters
    assert len(counts) == control.world
    assert min(counts) > 0
    comparison.train()
    comparison.found["logits"] = comparison.evaluate(comparison.pipeline)
    comparison.state()
    return comparison.found


def main(out: str) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    control = Control(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    table: dict[str, dict[str, float]] = {}
    for name, variant in VARIANTS.items():
        shares = control.collect(compare(control, *variant))
        if shares is not None:
            keys = {key for share in shares for key in share}
            table[name] = {key: max(s.get(key, 0.0) for s in shares) for key in keys}
    if control.rank == 0:
        Path(out).write_text(json.dumps(table))
    distributed.destroy_process_group()


main(*sys.argv[1:])
