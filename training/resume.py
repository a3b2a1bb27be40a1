"""Everything besides the weights that training needs to go on where it was.

The optimizer's state is kept by parameter name and in full, so another number of processes or
another strategy can take it up. The order of samples and their augmentation follow from seed, epoch
and position alone; only modules with randomness of their own (dropout) need the generators' state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import load_file
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import FSDPModule

from ringside.errors import RunDirError
from ringside.spec import RunSpec
from training.pipeline.state import load_own, whole_optimizer_state

STATE_FILE = "training.pt"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where training stands: `step_in_epoch` optimizer steps of `epoch` are done, `step` in all.

    `samples_in_epoch` is the same position in images, for a run with another global batch.
    """

    epoch: int
    step_in_epoch: int = 0
    samples_in_epoch: int = 0
    step: int = 0


def full_options() -> StateDictOptions:
    """Whole tensors on the CPU, whatever the sharding."""
    return StateDictOptions(full_state_dict=True, cpu_offload=True)


def training_state(engine: Any, control: Any, progress: Progress) -> dict[str, Any]:
    """The state on rank 0 (others get the same shape without generators). A collective."""
    if engine.pipeline is not None:
        optimizer = whole_optimizer_state(engine.plain, engine.optimizer.optimizer, control)
    else:
        optimizer = get_optimizer_state_dict(
            engine.named_module, engine.optimizer.optimizer, options=full_options()
        )
    scaler = engine.accelerator.scaler
    return {
        "progress": msgspec.to_builtins(progress),
        "weights": _raw_weights(engine),
        "optimizer": optimizer,
        "scaler": scaler.state_dict() if scaler is not None else None,
        "generators": control.collect(_generators(engine.device)),
        "processes": engine.world,
    }


def _raw_weights(engine: Any) -> dict[str, Any] | None:
    """The weights that train, where the checkpoint's are their average; else None."""
    if engine.ema is None:
        return None
    return {name: tensor.cpu() for name, tensor in engine.plain.state_dict().items()}


def restore(engine: Any, folder: Path) -> Progress:
    """Load weights, optimizer and generators of a checkpoint folder; returns where it stood."""
    try:
        weights: dict[str, Any] = dict(load_file(folder / "model.safetensors"))
        state = torch.load(folder / STATE_FILE, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, KeyError) as error:
        raise RunDirError(f"The checkpoint {folder} cannot be resumed from: {error}.") from None
    if engine.ema is not None:
        engine.ema.module.load_state_dict(weights)
    weights = state.get("weights") or weights
    if engine.pipeline is not None:
        load_own(engine.plain, engine.optimizer.optimizer, weights, state["optimizer"])
    else:
        _load_whole(engine, weights, state["optimizer"])
    if engine.accelerator.scaler is not None and state["scaler"] is not None:
        engine.accelerator.scaler.load_state_dict(state["scaler"])
    generators = state["generators"] or []
    if len(generators) == engine.world:
        _set_generators(generators[engine.rank], engine.device)
    return msgspec.convert(state["progress"], Progress)


def _load_whole(engine: Any, weights: dict[str, Any], optimizer: dict[str, Any]) -> None:
    for module in engine.model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()  # A forward leaves the root whole, and whole weights cannot be loaded.
    module, inner = engine.named_module, engine.optimizer.optimizer
    set_model_state_dict(module, weights, options=full_options())
    set_optimizer_state_dict(module, inner, optimizer, options=full_options())


def differences(spec: RunSpec, folder: Path) -> list[str]:
    """What differs from the run that wrote the checkpoint, as `name: before, now`."""
    about = msgspec.json.decode((folder / "about.json").read_bytes())
    before = about.get("request", {})
    now = request_of(spec)
    return [f"{name}: {before.get(name)}, now {now[name]}" for name in now if name in before
            and before[name] != now[name]]  # fmt: skip


def request_of(spec: RunSpec) -> dict[str, Any]:
    """The settings of a spec on which an exact continuation depends."""
    return {
        "strategy": spec.strategy,
        "num_processes": spec.num_processes,
        "global_batch": spec.global_batch,
        "micro_batch": spec.micro_batch,
        "mixed_precision": spec.accelerate.mixed_precision,
        "epochs": spec.epochs,
        "seed": spec.seed,
    }


def _generators(device: torch.device) -> dict[str, torch.Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    return states


def _set_generators(states: dict[str, torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
