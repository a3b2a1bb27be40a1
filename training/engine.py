"""Builds the Accelerator and the prepared model, reads back what really came, and compares."""

from __future__ import annotations

import os
import platform
import warnings
from pathlib import Path
from typing import Any

import accelerate
import timm
import torch
from accelerate import Accelerator
from accelerate.utils import DDPCommunicationHookType, DistributedDataParallelKwargs
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ringside.errors import SetupError
from ringside.spec import Observed, RunSpec, TrainingSettings
from training import fsdp
from training.fsdp import no_accumulation
from training.model import Loss
from training.traffic import power_sgd_bytes
from training.weight_averaging import WeightAverager

RECORDED_ENVIRONMENT = ("ACCELERATE_", "FSDP_", "NCCL_", "TORCH_NCCL_", "GLOO_", "OMP_NUM_THREADS")
RECORDED_EXACT = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
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
        hook, reduce_dtype = _hook_of(self.model), _reduce_dtype_of(self.model)
        return Observed(
            num_processes=self.world,
            strategy=_strategy_of(self.model, self.averager),
            mixed_precision=self._precision_inside_forward(),
            backend=torch.distributed.get_backend() if self.world > 1 else None,
            device=self.device.type,
            device_name=_device_name(self.device),
            num_parameters=self.num_parameters,
            bucket_bytes=_bucket_bytes(self.model),
            reduced_bytes_per_step=self._reduced_bytes(reduce_dtype),
            reduce_dtype=reduce_dtype,
            comm_hook=hook,
            gradient_as_bucket_view=getattr(self.model, "gradient_as_bucket_view", False),
            static_graph=getattr(self.model, "static_graph", False),
            compiled=compiled,
            channels_last=_is_channels_last(self.plain),
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


def check(requested: RunSpec, observed: Observed) -> None:
    """Requested and observed must be equal: SetupError names the first field that differs."""
    pairs: dict[str, tuple[object, object]] = {
        "num_processes": (requested.num_processes, observed.num_processes),
        "strategy": (requested.strategy, observed.strategy),
        "mixed_precision": (requested.accelerate.mixed_precision, observed.mixed_precision),
        "device": (requested.device, observed.device),
        "comm_hook": (requested.training.comm_hook, observed.comm_hook),
        "gradient_as_bucket_view": (
            requested.training.gradient_as_bucket_view,
            observed.gradient_as_bucket_view,
        ),
        "static_graph": (requested.training.static_graph, observed.static_graph),
        "channels_last": (requested.channels_last, observed.channels_last),
        "compile": (requested.training.compile, observed.compiled),
    }
    if requested.strategy == "fsdp":
        pairs["reduce_dtype"] = (requested.training.reduce_dtype, observed.reduce_dtype)
    if requested.device == "cpu":
        pairs["threads"] = (requested.threads_per_device, observed.threads)
    for name, (asked, got) in pairs.items():
        if asked != got:
            raise SetupError(
                f"The set-up that came is not the one asked for: {name} should be {asked} "
                f"and is {got}. Nothing was trained."
            )


def recorded_environment() -> dict[str, str]:
    """The variables that shape a distributed run, by allow-list, as this rank got them."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name.startswith(RECORDED_ENVIRONMENT) or name in RECORDED_EXACT
    }


def versions() -> dict[str, str]:
    """What this rank really imported."""
    found = {
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "accelerate": accelerate.__version__,
        "timm": timm.__version__,
    }
    if torch.cuda.is_available():
        found["cuda"] = str(torch.version.cuda)
        found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found


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


def _strategy_of(model: nn.Module, averager: WeightAverager | None) -> str:
    if isinstance(model, DistributedDataParallel):
        return "ddp"
    if averager is not None and averager.world > 1:
        return "local_sgd"
    return "fsdp" if fsdp.num_units(model) else "single"


def _hook_of(model: nn.Module) -> str:
    hooks: list[Any] = getattr(model, "_comm_hooks", [])
    names = {
        "bf16_compress_hook": "bf16",
        "fp16_compress_hook": "fp16",
        "powerSGD_hook": "power_sgd",
    }
    return names.get(hooks[0][0].__name__, hooks[0][0].__name__) if hooks else "no"


def _reduce_dtype_of(model: nn.Module) -> str | None:
    if isinstance(model, DistributedDataParallel):
        hook = _hook_of(model)
        return "fp32" if hook == "no" else hook
    return fsdp.reduce_dtype_of(model)


def _bucket_bytes(model: nn.Module) -> tuple[int, ...]:
    """DDP's own layout; it may be rebuilt once after the first step."""
    if not isinstance(model, DistributedDataParallel):
        return ()
    sizes = str(model._get_ddp_logging_data().get("bucket_sizes", ""))
    return tuple(int(size) for size in sizes.split(",") if size.strip())


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return _cpu_name() or platform.processor() or platform.machine()


def _cpu_name() -> str | None:
    """The model name that Linux tells; elsewhere None."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None)


def _is_channels_last(model: nn.Module) -> bool:
    """A kernel with more than one channel and more than one pixel tells the layouts apart."""
    kernels = [p for p in model.parameters() if p.dim() == 4 and min(p.shape[1:3]) > 1]
    return all(p.is_contiguous(memory_format=torch.channels_last) for p in kernels) and bool(
        kernels
    )
