"""Everything besides the weights that training needs to go on where it was.

The optimizer's state is kept by parameter name and in full, so another number of processes or
another strategy can take it up. Ranks that train alone (local SGD) each keep their own as well,
which as many ranks take up again. The order of samples and their augmentation follow from seed,
epoch and position alone; only modules with randomness of their own (dropout) need the generators'
state.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch
from safetensors.torch import load_file
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import FSDPModule

from ringside.checkpoints import STATE, WEIGHTS, About, damaged_file
from ringside.data import ImageData
from ringside.errors import RunDirError, SetupError
from ringside.events import EpochTrained
from ringside.spec import RunSpec
from ringside.words import say
from training.pipeline.state import load_own, whole_optimizer_state

NUM_NAMED = 3


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where training stands: `step_in_epoch` optimizer steps of `epoch` are done, `step` in all.

    `samples_in_epoch` is the same position in images, for a run with another global batch.
    `unevaluated` is the epoch before, when it is trained and has no scores yet.
    """

    epoch: int
    step_in_epoch: int = 0
    samples_in_epoch: int = 0
    step: int = 0
    unevaluated: EpochTrained | None = None


class _Saved(NamedTuple):
    """What a checkpoint folder holds."""

    weights: dict[str, torch.Tensor]
    state: dict[str, Any]
    progress: Progress


def full_options() -> StateDictOptions:
    """Whole tensors on the CPU, whatever the sharding."""
    return StateDictOptions(full_state_dict=True, cpu_offload=True)


def training_state(engine: Any, control: Any, progress: Progress) -> dict[str, Any]:
    """The state on rank 0 (others get the same shape without generators). A collective."""
    scaler = engine.accelerator.scaler
    mine = {
        "optimizer": _optimizer_state(engine, control),
        "scaler": scaler.state_dict() if scaler is not None else None,
    }
    return {
        "progress": msgspec.to_builtins(progress),
        "weights": _raw_weights(engine),
        **mine,
        "of_each_rank": control.collect(mine) if engine.averager is not None else None,
        "generators": control.collect(_generators(engine.device)),
        "processes": engine.world,
    }


def _optimizer_state(engine: Any, control: Any) -> dict[str, Any]:
    """By parameter name, whole on rank 0; a rank that trains alone has its own."""
    optimizer = engine.optimizer.optimizer
    if engine.pipeline is not None:
        return whole_optimizer_state(engine.plain, optimizer, control)
    alone = engine.averager is not None
    options = StateDictOptions(cpu_offload=True) if alone else full_options()
    return dict(get_optimizer_state_dict(engine.named_module, optimizer, options=options))


def _raw_weights(engine: Any) -> dict[str, Any] | None:
    """The weights that train, where the checkpoint's are their average; else None."""
    if engine.ema is None:
        return None
    return {name: tensor.cpu() for name, tensor in engine.plain.state_dict().items()}


def restore(engine: Any, folder: Path, about: About | None = None) -> Progress:
    """Load weights, optimizer and generators of a checkpoint folder; returns where it stood.

    RunDirError when a file is missing or damaged or the weights are those of another model; by
    the checksums of `about` where it is given.
    """
    weights, state, progress = _read(folder, about)
    _refuse_other_model(engine.plain, weights, folder)
    if engine.ema is not None:
        engine.ema.module.load_state_dict(weights)
    weights = state.get("weights") or weights
    mine = _part_of(engine, state)
    if engine.pipeline is not None:
        load_own(engine.plain, engine.optimizer.optimizer, weights, mine["optimizer"])
    else:
        _load_whole(engine, weights, mine["optimizer"])
    if engine.accelerator.scaler is not None and mine["scaler"] is not None:
        engine.accelerator.scaler.load_state_dict(mine["scaler"])
    generators = state["generators"] or []
    if len(generators) == engine.world:
        _set_generators(generators[engine.rank], engine.device)
    return progress


def _read(folder: Path, about: About | None) -> _Saved:
    if about and (name := damaged_file(folder, about)):
        raise _unusable(folder, name, say("refused.is_damaged"))
    with _readable(folder, WEIGHTS):
        weights = load_file(folder / WEIGHTS)
    with _readable(folder, STATE):
        state = torch.load(folder / STATE, map_location="cpu", weights_only=True)
        progress = msgspec.convert(state["progress"], Progress)
        for part in ("optimizer", "scaler", "generators"):
            state[part]  # A file that another program wrote is found out here.
    return _Saved(weights, state, progress)


@contextmanager
def _readable(folder: Path, name: str) -> Iterator[None]:
    """Whatever reading a file raises, as one sentence."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:  # Reading damaged bytes may raise anything.
        is_away = isinstance(error, FileNotFoundError)
        unreadable = say("refused.is_unreadable", why=type(error).__name__)
        reason = say("refused.is_missing") if is_away else unreadable
        raise _unusable(folder, name, reason) from None


def _unusable(folder: Path, name: str, reason: str) -> RunDirError:
    return RunDirError(say("refused.checkpoint_file", path=folder, name=name, reason=reason))


def _refuse_other_model(model: nn.Module, weights: dict[str, torch.Tensor], folder: Path) -> None:
    """A pipeline's stage has some of the weights, every other model all."""
    for name, parameter in model.named_parameters():
        found = weights.get(name)
        if found is None or found.shape != parameter.shape:
            has = "is missing" if found is None else f"has shape {list(found.shape)}"
            raise RunDirError(
                f"The checkpoint {folder} cannot be resumed from: its {name} {has} and the model's "
                f"has shape {list(parameter.shape)}; choose the model that it was trained with."
            )


def _part_of(engine: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The rank's own optimizer and scaler where each had its own, else those that all have."""
    shares = state.get("of_each_rank") or []
    alone = engine.averager is not None and len(shares) == engine.world
    return dict(shares[engine.rank]) if alone else state


def _load_whole(engine: Any, weights: dict[str, Any], optimizer: dict[str, Any]) -> None:
    for module in engine.model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()  # A forward leaves the root whole, and whole weights cannot be loaded.
    module, inner = engine.named_module, engine.optimizer.optimizer
    set_model_state_dict(module, weights, options=full_options())
    set_optimizer_state_dict(module, inner, optimizer, options=full_options())


def refuse_other_data(about: About, data: ImageData, folder: Path) -> None:
    """SetupError when the outputs of the checkpoint mean something else than those of the data."""
    if about.task != data.task:
        raise SetupError(say("refused.other_task", path=folder, before=about.task, now=data.task))
    if about.classes != data.classes:
        found = _first_differences(about.classes, data.classes)
        raise SetupError(say("refused.other_classes", path=folder, found=found))


def _first_differences(before: tuple[str, ...], now: tuple[str, ...]) -> str:
    changes = [
        f"class {i} was {old!r}, now {new!r}" if old is not None and new is not None
        else f"class {i}, {old!r}, is gone" if old is not None else f"class {i}, {new!r}, is new"
        for i, (old, new) in enumerate(zip_longest(before, now), start=1) if old != new
    ]  # fmt: skip
    more = len(changes) - NUM_NAMED
    return "; ".join(changes[:NUM_NAMED]) + (f"; and {more} more" if more > 0 else "")


def differences(about: About, spec: RunSpec, data: ImageData) -> list[str]:
    """What differs from the run that wrote the checkpoint, as `name: before, now`."""
    before, now = dict(about.request), request_of(spec)
    if about.data_fingerprint is not None:
        before["content of the data"] = about.data_fingerprint
        now["content of the data"] = data.fingerprint
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
