"""Checkpoints that load into plain timm: full weights, class names, and how they came to be."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import timm
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

from ringside.checkpoints import (
    ABOUT,
    CLASSES,
    STATE,
    THRESHOLDS,
    WEIGHTS,
    About,
    Thresholds,
    checksums_of,
    damaged_file,
    folders_of,
)
from ringside.data import write_classes
from ringside.errors import RunDirError, SetupError
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from ringside.words import say
from training.control import Control
from training.input.normalisation import normalisation_of
from training.model import has_fixed_size
from training.pipeline.state import whole_weights

SPARE_BYTES = 2**20  # names, class list and description


def full_weights(engine: Any, control: Control) -> dict[str, Any]:
    """All weights and buffers on rank 0's CPU, with timm's own names. Every rank must call."""
    if engine.pipeline is not None:
        return whole_weights(engine.plain, control)
    if engine.spec.strategy != "fsdp":
        module = engine.plain if engine.ema is None else engine.ema.module
        return {name: tensor.cpu() for name, tensor in module.state_dict().items()}
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return dict(get_model_state_dict(engine.model, options=options))


def save(
    run: RunDir, name: str, weights: dict[str, Any], about: dict[str, Any],
    state: dict[str, Any] | None = None, thresholds: Thresholds | None = None,
) -> Path:  # fmt: skip
    """Write `checkpoints/NAME` whole or not at all; the old one stays until this one is there.

    `state` is what a resumed run needs besides the weights. Raises RunDirError when the volume has
    too little space, OSError when writing fails all the same.
    """
    fresh = _empty(run, name)
    tensors = {key: tensor.contiguous() for key, tensor in weights.items()}
    _require_space(run, tensor_bytes(tensors) + tensor_bytes(state))
    with _removed_on_failure(fresh):
        fresh.mkdir(parents=True)
        save_file(tensors, fresh / WEIGHTS)
        (fresh / WEIGHTS).chmod(0o644)  # safetensors 0.8 lets nobody else read it
        if state is not None:
            torch.save(state, fresh / STATE)
        write_classes(fresh / CLASSES, tuple(about["classes"]))
        run.write(fresh / THRESHOLDS, thresholds or Thresholds())
        run.write(fresh / ABOUT, {"format": 1, **about, "checksums": checksums_of(fresh)})
        _sync_folder(fresh)
        return _replace(run, name, fresh)


def adopt(run: RunDir, name: str, source: Path) -> Path:
    """Make another run's checkpoint folder this run's `name`; costs no space on one volume.

    Files of a checkpoint are never changed, only replaced, so hard links are safe.
    """
    fresh = _empty(run, name)
    with _removed_on_failure(fresh):
        shutil.copytree(source, fresh, copy_function=_link_or_copy)
        return _replace(run, name, fresh)


def tensor_bytes(value: Any) -> int:
    """Bytes of all tensors in nested dicts, lists and tuples."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, dict):
        return sum(map(tensor_bytes, value.values()))
    return sum(map(tensor_bytes, value)) if isinstance(value, list | tuple) else 0


def describe(spec: RunSpec, classes: tuple[str, ...], task: str, **facts: Any) -> dict[str, Any]:
    """What someone needs to use the weights, without the run."""
    return {
        "model": spec.model,
        "num_classes": len(classes),
        "classes": classes,
        "task": task,
        "image_size": spec.data.image_size,
        "ema_decay": spec.training.ema_decay,
        **normalisation_of(spec.model)._asdict(),
        **facts,
    }


def load_weights(model: nn.Module, path: Path) -> None:
    """Strict load of a checkpoint folder's weights into a plain timm model."""
    model.load_state_dict(load_file(path / WEIGHTS), strict=True)


def load_model(folder: Path, about: About) -> nn.Module:
    """The plain timm model of a checkpoint or exported folder, on the CPU, ready to predict."""
    arguments: dict[str, Any] = {"num_classes": len(about.classes)}
    if damaged_file(folder, about, WEIGHTS):
        reason = say("refused.damaged", name=WEIGHTS)
        raise SetupError(say("refused.weights_unloadable", path=folder, reason=reason))
    try:
        if has_fixed_size(about.model):
            arguments["img_size"] = about.image_size
        model = timm.create_model(about.model, pretrained=False, **arguments)
        load_weights(model, folder)
    except (RuntimeError, OSError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SetupError(say("refused.weights_unloadable", path=folder, reason=reason)) from None
    return model.eval()


def _empty(run: RunDir, name: str) -> Path:
    """The name under which a folder is made; a half-made one of an earlier try is removed."""
    fresh: Path = run.checkpoints / f".{name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    return fresh


def _replace(run: RunDir, name: str, fresh: Path) -> Path:
    """Rename into place, then prune the older one."""
    target, old = folders_of(run, name)
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    return target


def _require_space(run: RunDir, num_bytes: int) -> None:
    needed, free = num_bytes + SPARE_BYTES, shutil.disk_usage(run.checkpoints).free
    if free < needed:
        raise RunDirError(
            f"it needs {needed / 1e6:,.1f} MB and {free / 1e6:,.1f} MB are free in "
            f"{run.checkpoints}"
        )


@contextmanager
def _removed_on_failure(fresh: Path) -> Iterator[None]:
    """Half a checkpoint would keep the space that the next one needs.

    The writers of safetensors and torch report a full disk in their own ways (SafetensorError and
    RuntimeError); callers get an OSError.
    """
    try:
        yield
    except (SafetensorError, RuntimeError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        raise OSError(str(error).strip().splitlines()[0]) from error
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _sync_folder(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
