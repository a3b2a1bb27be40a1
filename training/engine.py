"""Builds the Accelerator and the prepared model, and observes what came of it."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DDPCommunicationHookType, DistributedDataParallelKwargs
from torch import nn

from ringside.errors import SetupError
from ringside.spec import Observed, RunSpec, TrainingSettings
from training import fsdp
from training.fsdp import no_accumulation
from training.model import Loss
from training.observation import (
    bucket_bytes,
    device_name,
    hook_of,
    is_channels_last,
    recorded_environment,
    reduce_dtype_of,
    strategy_of,
    versions,
)
from training.traffic import power_sgd_bytes
from training.weight_averaging import WeightAverager

HOOKS = {
    "no": DDPCommunicationHookType.NO,
    "fp16": DDPCommunicationHookType.FP16,
    "bf16": DDPCommunicationHookType.BF16,
    "power_sgd": DDPCommunicationHookType.POWER_SGD,
}
DTYPE_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "power_sgd": 4}
PRECISION_OF_DTYPE = {torch.float32: "no", torch.float16: "fp16", torch.bfloat16: "bf16"}


class Engine:
    """The prepared parts of one rank: accelerator, wrapped model, optimizer, and their facts."""

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        self.loss: Loss
        self.averager: WeightAverager | None = None
        prepare_device(spec)
        self.accelerator = _build_accelerator(spec)
        self.device: torch.device = self.accelerator.device
        self.rank: int = self.accelerator.process_index
        self.world: int = self.accelerator.num_processes
        self.dtype = {"no": None, "fp16": torch.float16, "bf16": torch.bfloat16}[
            spec.accelerate.mixed_precision
        ]
        _check_world(spec, self.world)

    def prepare(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Compile, then wrap. Compiling first keeps DDP from breaking the graph at its buckets."""
        self.plain = model
        self.num_parameters = sum(p.numel() for p in model.parameters())
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
        model = model.to(self.device)
        forward = torch.compile(model) if self.spec.training.compile else model
        self.model, self.optimizer = self.accelerator.prepare(forward, optimizer)

    def autocast(self) -> torch.autocast:
        """The compute precision of the preset; off for fp32."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype is not None)

    @property
    def evaluated_module(self) -> nn.Module:
        """The sharded model under FSDP (its forward is a collective), else the plain one."""
        return self.model if self.spec.strategy == "fsdp" else self.plain

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
            strategy=strategy_of(self.model, self.averager),
            mixed_precision=self._precision_inside_forward(),
            backend=torch.distributed.get_backend() if self.world > 1 else None,
            device=self.device.type,
            device_name=device_name(self.device),
            num_parameters=self.num_parameters,
            bucket_bytes=bucket_bytes(self.model),
            reduced_bytes_per_step=self._reduced_bytes(reduce_dtype),
            reduce_dtype=reduce_dtype,
            comm_hook=hook_of(self.model),
            gradient_as_bucket_view=getattr(self.model, "gradient_as_bucket_view", False),
            static_graph=getattr(self.model, "static_graph", False),
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
        weights = [p for p in self.model.parameters() if p.requires_grad]
        if reduce_dtype == "power_sgd":
            return power_sgd_bytes(weights, self.spec.training.power_sgd_rank)
        return DTYPE_BYTES[reduce_dtype] * sum(p.numel() for p in weights)

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
                self.evaluated_module(torch.zeros(2, 3, size, size, device=self.device))
        except (RuntimeError, ValueError, AssertionError) as error:
            raise SetupError(
                f"{self.spec.model} cannot take images of {size} px ({error}); choose another "
                "image size or model."
            ) from error
        finally:
            handle.remove()
            self.plain.train()
        return PRECISION_OF_DTYPE.get(seen[0], str(seen[0]))


def prepare_device(spec: RunSpec) -> None:
    """Threads on a CPU; TF32 and autotuned convolutions on a GPU, the same for every preset."""
    if spec.device == "cpu":
        torch.set_num_threads(spec.threads_per_device)
        return
    if not torch.cuda.is_available():
        raise SetupError("The run was planned for GPUs, but torch sees none here.")
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")


def _build_accelerator(spec: RunSpec) -> Accelerator:
    cpu, precision = spec.device == "cpu", spec.accelerate.mixed_precision
    if spec.accelerate.fsdp_config is not None:
        plugin = fsdp.make_plugin(spec.accelerate.fsdp_config, spec.training.reduce_dtype)
        return fsdp.build_accelerator(plugin, cpu=cpu, precision=precision)
    # torch 2.14 renames the argument; Accelerate's handler and torch 2.11 know only this name.
    warnings.filterwarnings("ignore", message="`broadcast_buffers` is deprecated")
    handler = DistributedDataParallelKwargs(
        # BatchNorm statistics are averaged before they are used; see training.batchnorm.
        broadcast_buffers=False,
        **_ddp_arguments(spec.training),
    )
    return Accelerator(
        cpu=cpu,
        mixed_precision=precision,
        kwargs_handlers=[handler],
        gradient_accumulation_plugin=no_accumulation(),
    )


def _ddp_arguments(training: TrainingSettings) -> dict[str, Any]:
    """What differs from torch's defaults; a bucket size that is not passed keeps torch's layout."""
    arguments: dict[str, Any] = {
        "comm_hook": HOOKS[training.comm_hook],
        "gradient_as_bucket_view": training.gradient_as_bucket_view,
        "static_graph": training.static_graph,
    }
    if training.bucket_cap_mb is not None:
        arguments["bucket_cap_mb"] = training.bucket_cap_mb
    if training.comm_hook == "power_sgd":
        arguments["comm_state_option"] = {
            "matrix_approximation_rank": training.power_sgd_rank,
            "start_powerSGD_iter": training.power_sgd_start_step,
        }
    return arguments


def _check_world(spec: RunSpec, world: int) -> None:
    if world != spec.num_processes:
        raise SetupError(
            f"{spec.num_processes} processes were asked for and {world} joined; each would have "
            "trained alone. Nothing was trained."
        )
