"""Builds the Accelerator and the prepared model, and observes what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from timm.utils import ModelEmaV3
from torch import nn

from ringside.errors import SetupError
from ringside.spec import Observed, RunSpec
from ringside.words import say
from training import data_parallel, fsdp
from training.accelerator import build_accelerator, check_world, prepare_device
from training.batchnorm import average_statistics
from training.ema import make_average
from training.freezing import hold_statistics, is_frozen
from training.losses import Loss
from training.observation import (
    bucket_bytes,
    device_name,
    hook_of,
    is_channels_last,
    is_synchronised,
    num_devices_of,
    recorded_environment,
    reduce_dtype_of,
    strategy_of,
    versions,
)
from training.pipeline import Pipeline
from training.traffic import reduced_bytes
from training.weight_averaging import WeightAverager

PRECISION_OF_DTYPE = {torch.float32: "no", torch.float16: "fp16", torch.bfloat16: "bf16"}


class Engine:
    """The prepared parts of one rank: accelerator, wrapped model, optimizer, and their facts."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.loss: Loss
        self.averager: WeightAverager | None = None
        self.pipeline: Pipeline | None = None
        self.ema: ModelEmaV3 | None = None
        prepare_device(spec)
        self.accelerator = build_accelerator(spec)
        self.device: torch.device = self.accelerator.device
        self.rank: int = self.accelerator.process_index
        self.world: int = self.accelerator.num_processes
        self.dtype = {"no": None, "fp16": torch.float16, "bf16": torch.bfloat16}[
            spec.accelerate.mixed_precision
        ]
        check_world(spec, self.world)

    def own_part(self, model: nn.Module) -> nn.Module:
        """What this rank trains of the model: a stage under model_parallel, else all of it."""
        if self.spec.strategy == "model_parallel":
            self.pipeline = Pipeline(self.spec, model, self.rank, self.device, self.dtype)
        return model

    def prepare(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Compile, then wrap. Compiling first keeps DDP from breaking the graph at its buckets."""
        self.plain = model
        self.num_parameters = sum(p.numel() for p in model.parameters())
        # Before FSDP leaves each rank a part. A pipeline trains all that its stages have.
        self.num_trainable = sum(p.numel() for p in model.parameters() if p.requires_grad)
        if self.spec.strategy == "local_sgd":
            self.model = model.to(self.device)
            self.optimizer = self.accelerator.prepare(optimizer)
            every = self.spec.training.local_sgd_steps or 1
            self.averager = WeightAverager(model, self.world, every)
            return
        if self.spec.strategy == "fsdp":
            fsdp.restrict_wrapping(self.accelerator.state.fsdp_plugin, model)
            self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
            return
        if self.pipeline is not None:
            self.num_parameters = self.num_trainable = self.pipeline.num_parameters
            self.pipeline.prepare(self.loss)
            self.model, self.optimizer = self.pipeline.stage, self.accelerator.prepare(optimizer)
            return
        model = model.to(self.device)
        if self.spec.training.ema_decay is not None:
            self.ema = make_average(model, self.spec.training.ema_decay)
        if self.spec.strategy == "data_parallel":
            self.model = data_parallel.spread(model, self.spec.num_devices, self.device, self.dtype)
            self.optimizer = self.accelerator.prepare(optimizer)
            return
        forward = self._compiled(model) if self.spec.training.compile else model
        self.model, self.optimizer = self.accelerator.prepare(forward, optimizer)

    def _compiled(self, model: nn.Module) -> Any:
        mode = self.spec.training.compile_mode
        return torch.compile(model, mode=None if mode == "default" else mode)

    def autocast(self) -> torch.autocast:
        """The compute precision of the preset; off for fp32."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None)

    @property
    def num_replicas(self) -> int:
        """Ranks that hold the whole model, each with BatchNorm statistics of its own images."""
        return 1 if self.pipeline is not None else self.world

    @property
    def named_module(self) -> nn.Module:
        """The module whose parameters torch's state functions call by timm's names.

        They look through DDP and compilation, but not through nn.DataParallel.
        """
        return self.plain if self.spec.strategy == "data_parallel" else self.model

    @property
    def evaluated_module(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """What is scored: the averaged weights where they are kept, else those that train."""
        return self.ema.module if self.ema is not None else self._trained_module

    @property
    def _trained_module(self) -> Callable[[torch.Tensor], torch.Tensor]:
        """The plain model; where a forward is a collective, what all ranks have to call."""
        if self.pipeline is not None:
            return self.pipeline.logits
        return self.model if self.spec.strategy == "fsdp" else self.plain

    def clip_gradients(self, max_norm: float) -> torch.Tensor | None:
        """Clip by the norm of the whole model's gradients and return it. A collective."""
        if self.pipeline is not None:
            return self.pipeline.clip_gradients(max_norm)
        return self.accelerator.clip_grad_norm_(self.model.parameters(), max_norm)

    def follow_weights(self, step: int) -> None:
        """Take the weights after optimizer step `step` (from 1) into their moving average."""
        if self.ema is not None:
            self.ema.update(self.plain, step=step)

    def average_statistics(self) -> None:
        """The same BatchNorm statistics on all ranks, of the weights and of their average."""
        average_statistics(self.plain, self.num_replicas)
        if self.ema is not None:
            average_statistics(self.ema.module, self.num_replicas)

    def train_mode(self) -> None:
        """All layers train again after an evaluation, but for those that are frozen."""
        self.plain.train()
        hold_statistics(self.plain)

    def synchronize(self) -> None:
        """Wait for the device; only at the ends of epochs."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def observe(self) -> Observed:
        """Read the set-up back from the objects that will train. A collective under FSDP."""
        compiled = any(hasattr(m, "_orig_mod") for m in (self.model, *self.model.children()))
        reduce_dtype = reduce_dtype_of(self.model)
        return Observed(
            num_processes=self.world,
            num_devices=num_devices_of(self.model, self.world),
            strategy=strategy_of(self.model, self.averager),
            mixed_precision=self._precision_inside_forward(),
            backend=torch.distributed.get_backend() if self.world > 1 else None,
            device=self.device.type,
            device_name=device_name(self.device),
            num_parameters=self.num_parameters,
            num_trainable_parameters=self.num_trainable,
            freeze="backbone" if is_frozen(self.plain) else "no",
            sync_batchnorm=is_synchronised(self.plain),
            ema_decay=self.ema.decay if self.ema is not None else None,
            bucket_bytes=bucket_bytes(self.model),
            reduced_bytes_per_step=self._reduced_bytes(reduce_dtype),
            sent_bytes_per_step=self.pipeline.sent_bytes_per_step if self.pipeline else None,
            stage_parameters=self.pipeline.stage_parameters() if self.pipeline else (),
            pipeline_micro_batches=self.pipeline.num_micro_batches if self.pipeline else None,
            reduce_dtype=reduce_dtype,
            comm_hook=hook_of(self.model),
            gradient_as_bucket_view=getattr(self.model, "gradient_as_bucket_view", False),
            static_graph=getattr(self.model, "static_graph", False),
            find_unused_parameters=getattr(self.model, "find_unused_parameters", False),
            compiled=compiled,
            channels_last=is_channels_last(self.plain),
            threads=torch.get_num_threads(),
            environment=recorded_environment(),
            versions=versions(),
        )

    def _reduced_bytes(self, reduce_dtype: str | None) -> int | None:
        """Bytes that one rank hands to reduction per optimizer step, in its usual state."""
        if self.averager is not None:
            return self.averager.bytes_per_step
        if reduce_dtype is None:
            return None
        weights = (p for p in self.model.parameters() if p.requires_grad)
        return reduced_bytes(weights, reduce_dtype, self.spec.training.power_sgd_rank)

    @torch.no_grad()
    def _precision_inside_forward(self) -> str:
        """The dtype that a convolution or linear layer really puts out, not what was configured."""
        seen: list[torch.dtype] = []
        layer = next(m for m in self.plain.modules() if isinstance(m, nn.Conv2d | nn.Linear))
        handle = layer.register_forward_hook(lambda *args: seen.append(args[2].dtype))
        size = self.spec.data.image_size
        try:
            self.plain.eval()
            with self.autocast():
                several = self.spec.strategy == "data_parallel"
                forward = self.model if several else self._trained_module
                num_images = max(2, self.spec.num_devices)
                forward(torch.zeros(num_images, 3, size, size, device=self.device))
        except (RuntimeError, ValueError, AssertionError) as error:
            raise SetupError(
                say("refused.size", model=self.spec.model, n=size, reason=error)
            ) from error
        finally:
            handle.remove()
            self.train_mode()
        # nn.DataParallel's copies report too, and each computes in a thread of its own.
        return " and ".join(sorted({PRECISION_OF_DTYPE.get(dtype, str(dtype)) for dtype in seen}))
