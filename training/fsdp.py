"""FSDP2 through Accelerate, with BatchNorm-safe precision, on GPUs and on gloo.

Two facts shape this module. FSDP's own `param_dtype` would cast BatchNorm's buffers and fail, so
parameters stay fp32, autocast does the 16-bit compute, and only `reduce_dtype` follows the preset.
And Accelerate 1.15 enters its FSDP code only on accelerators: on a CPU an FSDP file silently
becomes DDP. torch's `fully_shard` itself runs on gloo, so `say_fsdp` tells Accelerate's shared
state the truth before `prepare`, and everything after that is Accelerate's ordinary path.
"""

from __future__ import annotations

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from accelerate.utils import (
    DistributedType,
    FullyShardedDataParallelPlugin,
    GradientAccumulationPlugin,
    InitProcessGroupKwargs,
)
from torch import distributed, nn
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy

from ringside.errors import SetupError
from ringside.spec import FsdpConfig
from ringside.words import say

REDUCE_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def make_plugin(config: FsdpConfig, reduce_dtype: str) -> FullyShardedDataParallelPlugin:
    """Accelerate's plugin for one preset; given explicitly so that no variable can change it."""
    return FullyShardedDataParallelPlugin(
        fsdp_version=2,
        reshard_after_forward=config.fsdp_reshard_after_forward,
        cpu_offload=config.fsdp_offload_params,
        auto_wrap_policy=config.fsdp_auto_wrap_policy.lower(),
        transformer_cls_names_to_wrap=config.fsdp_transformer_layer_cls_to_wrap.split(","),
        cpu_ram_efficient_loading=config.fsdp_cpu_ram_efficient_loading,
        state_dict_type=config.fsdp_state_dict_type,
        mixed_precision_policy=MixedPrecisionPolicy(
            param_dtype=None, reduce_dtype=REDUCE_DTYPES[reduce_dtype], cast_forward_inputs=False
        ),
    )


def restrict_wrapping(plugin: FullyShardedDataParallelPlugin, model: nn.Module) -> None:
    """Keep only block classes that this model has; Accelerate fails on a name it cannot find."""
    present = {type(module).__name__ for module in model.modules()}
    asked = plugin.transformer_cls_names_to_wrap or []
    found = [name for name in asked if name in present]
    if plugin.auto_wrap_policy is not None and not found:
        blocks = sorted(name for name in present if "Block" in name or "Bottleneck" in name)
        own = ", ".join(blocks[:3]) or type(model).__name__
        raise SetupError(say("refused.no_blocks", asked=", ".join(asked), own=own))
    plugin.transformer_cls_names_to_wrap = found


def say_fsdp(plugin: FullyShardedDataParallelPlugin) -> None:
    """Put FSDP into Accelerate's shared state on a CPU; call after Accelerator(cpu=True)."""
    state = AcceleratorState()
    state.distributed_type = DistributedType.FSDP
    state.fsdp_plugin = plugin
    PartialState._shared_state["distributed_type"] = DistributedType.FSDP


def build_accelerator(
    plugin: FullyShardedDataParallelPlugin,
    process_group: InitProcessGroupKwargs,
    *,
    cpu: bool,
    precision: str,
) -> Accelerator:
    """An Accelerator whose state says FSDP on either device."""
    accelerator = Accelerator(
        cpu=cpu,
        mixed_precision=precision,
        fsdp_plugin=plugin,
        kwargs_handlers=[process_group],
        gradient_accumulation_plugin=no_accumulation(),
    )
    if cpu and distributed.is_initialized():
        say_fsdp(plugin)
    return accelerator


def no_accumulation() -> GradientAccumulationPlugin:
    """The loop scales by itself; explicit, because a variable would divide the loss once more."""
    return GradientAccumulationPlugin(num_steps=1)


def num_units(model: nn.Module) -> int:
    """How many modules are sharded on their own (18 for a timm ResNet-50 wrapped by block)."""
    return sum(isinstance(module, FSDPModule) for module in model.modules())


def reduce_dtype_of(model: nn.Module) -> str | None:
    """The dtype in which the first sharded unit reduces gradients, read back from FSDP itself."""
    for module in model.modules():
        if isinstance(module, FSDPModule):
            group = module._get_fsdp_state()._fsdp_param_group
            if group is not None:
                dtype = group.mp_policy.reduce_dtype or torch.float32
                return next((n for n, d in REDUCE_DTYPES.items() if d == dtype), str(dtype))
    return None
