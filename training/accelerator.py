"""Device, process group and DDP's arguments, as the spec asks for them."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import (
    DDPCommunicationHookType,
    DistributedDataParallelKwargs,
    InitProcessGroupKwargs,
)

from ringside.errors import SetupError
from ringside.spec import RunSpec, TrainingSettings
from training import fsdp

HOOKS = {
    "no": DDPCommunicationHookType.NO,
    "fp16": DDPCommunicationHookType.FP16,
    "bf16": DDPCommunicationHookType.BF16,
    "power_sgd": DDPCommunicationHookType.POWER_SGD,
}
NCCL_LATER_S = 15
HARDWARE_QUEUES = "32"


def prepare_device(spec: RunSpec) -> None:
    """Threads on a CPU; hardware queues, TF32 and the choice of convolutions on a GPU."""
    if spec.device == "cpu":
        torch.set_num_threads(spec.threads_per_device)
        return
    # By default 8, fewer than the streams here: the JPEG decoder alone makes 14, and what shares a
    # queue with training waits for it (decision 0031). Read when CUDA starts; 32 are the most.
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", HARDWARE_QUEUES)
    if not torch.cuda.is_available():
        raise SetupError("The run was planned for GPUs, but torch sees none here.")
    torch.backends.cudnn.benchmark = spec.training.cudnn_benchmark
    torch.set_float32_matmul_precision("high")


def build_accelerator(spec: RunSpec) -> Accelerator:
    """Accelerate's object for the spec; joins the process group."""
    cpu, precision = spec.device == "cpu", spec.accelerate.mixed_precision
    if spec.accelerate.fsdp_config is not None:
        plugin = fsdp.make_plugin(spec.accelerate.fsdp_config, spec.training.reduce_dtype)
        return fsdp.build_accelerator(plugin, _process_group(spec), cpu=cpu, precision=precision)
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
        kwargs_handlers=[handler, _process_group(spec)],
        gradient_accumulation_plugin=fsdp.no_accumulation(),
    )


def _process_group(spec: RunSpec) -> InitProcessGroupKwargs:
    """How long a rank waits for another one in a collective.

    gloo raises an error then. NCCL aborts the process, so whoever can still say why comes first:
    the side group (training.control) and the rank's own watchdog (training.watchdog).
    """
    later_s = NCCL_LATER_S if spec.device == "cuda" else 0
    return InitProcessGroupKwargs(timeout=timedelta(seconds=spec.training.timeout_s + later_s))


def _ddp_arguments(training: TrainingSettings) -> dict[str, Any]:
    """What differs from torch's defaults; a bucket size that is not passed keeps torch's layout."""
    arguments: dict[str, Any] = {
        "comm_hook": HOOKS[training.comm_hook],
        "gradient_as_bucket_view": training.gradient_as_bucket_view,
        "static_graph": training.static_graph,
        "find_unused_parameters": training.find_unused_parameters,
    }
    if training.bucket_cap_mb is not None:
        arguments["bucket_cap_mb"] = training.bucket_cap_mb
    if training.comm_hook == "power_sgd":
        arguments["comm_state_option"] = {
            "matrix_approximation_rank": training.power_sgd_rank,
            "start_powerSGD_iter": training.power_sgd_start_step,
        }
    return arguments


def check_world(spec: RunSpec, world: int) -> None:
    """Refuse a set-up in which not all processes found each other."""
    if world != spec.num_processes:
        raise SetupError(
            f"{spec.num_processes} processes were asked for and {world} joined; each would have "
            "trained alone. Nothing was trained."
        )
