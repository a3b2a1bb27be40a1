"""What really came, read back from the objects that train, and held against the request."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import accelerate
import timm
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from ringside.agreement import asked_and_got
from ringside.environment_lint import table
from ringside.errors import SetupError
from ringside.spec import Observed, RunSpec
from ringside.words import say
from training import fsdp, nccl_log
from training.data_parallel import devices_of
from training.pipeline.stage import Stage
from training.weight_averaging import WeightAverager

RECORDED_ENVIRONMENT = (
    "ACCELERATE_", "FSDP_", "NCCL_", "TORCH_NCCL_", "TORCH_FR_", "GLOO_", "OMP_NUM_THREADS",
)  # fmt: skip
RECORDED_EXACT = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "WORLD_SIZE", "LOCAL_WORLD_SIZE")


def check(requested: RunSpec, observed: Observed) -> None:
    """Requested and observed must be equal: SetupError names the first field that differs."""
    for name, (asked, got) in asked_and_got(requested, observed).items():
        if asked != got:
            raise SetupError(say("refused.not_asked_for", name=name, asked=asked, got=got))


def recorded_environment() -> dict[str, str]:
    """The variables that shape a distributed run, by allow-list, as this rank got them.

    So are all that the table of variables knows, such as CUDA_LAUNCH_BLOCKING; none of them holds
    a secret, and what does not stand there is not looked at.
    """
    own = nccl_log.ours()
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name not in own
        and (name.startswith(RECORDED_ENVIRONMENT) or name in RECORDED_EXACT or name in table())
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


def strategy_of(model: nn.Module, averager: WeightAverager | None) -> str:
    """single, data_parallel, ddp, local_sgd, model_parallel or fsdp, by what the model became."""
    if isinstance(model, DistributedDataParallel):
        return "ddp"
    if isinstance(model, nn.DataParallel):
        return "data_parallel"
    if isinstance(model, Stage):
        return "model_parallel"
    if averager is not None and averager.world > 1:
        return "local_sgd"
    return "fsdp" if fsdp.num_units(model) else "single"


def num_devices_of(model: nn.Module, world: int) -> int:
    """Devices that train: those nn.DataParallel really uses, else one for each process."""
    return devices_of(model) if isinstance(model, nn.DataParallel) else world


def hook_of(model: nn.Module) -> str:
    """The communication hook that DDP really registered."""
    hooks: list[Any] = getattr(model, "_comm_hooks", [])
    names = {
        "bf16_compress_hook": "bf16",
        "fp16_compress_hook": "fp16",
        "powerSGD_hook": "power_sgd",
    }
    return names.get(hooks[0][0].__name__, hooks[0][0].__name__) if hooks else "no"


def reduce_dtype_of(model: nn.Module) -> str | None:
    """How gradients are reduced: fp32, fp16, bf16 or power_sgd; None where none are."""
    if isinstance(model, DistributedDataParallel):
        hook = hook_of(model)
        return "fp32" if hook == "no" else hook
    return fsdp.reduce_dtype_of(model)


def bucket_bytes(model: nn.Module) -> tuple[int, ...]:
    """DDP's own layout; it may be rebuilt once after the first step."""
    if not isinstance(model, DistributedDataParallel):
        return ()
    sizes = str(model._get_ddp_logging_data().get("bucket_sizes", ""))
    return tuple(int(size) for size in sizes.split(",") if size.strip())


def is_synchronised(model: nn.Module) -> bool:
    """Whether every BatchNorm computes its statistics over all ranks."""
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]
    return bool(layers) and all(isinstance(layer, nn.SyncBatchNorm) for layer in layers)


def device_name(device: torch.device) -> str:
    """The model name of the GPU or the processor."""
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


def is_channels_last(model: nn.Module) -> bool:
    """A kernel with more than one channel and more than one pixel tells the layouts apart."""
    kernels = [p for p in model.parameters() if p.dim() == 4 and min(p.shape[1:3]) > 1]
    return all(p.is_contiguous(memory_format=torch.channels_last) for p in kernels) and bool(
        kernels
    )
