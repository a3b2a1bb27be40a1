"""Checkpoints that load into plain timm: full weights, class names, and how they came to be."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

from ringside.data import write_classes
from ringside.rundir import RunDir
from ringside.spec import RunSpec
from training.resume import STATE_FILE


def full_weights(engine: Any) -> dict[str, Any]:
    """All weights and buffers on the CPU, with timm's own names. Every rank must call (FSDP)."""
    if engine.spec.strategy != "fsdp":
        return {name: tensor.cpu() for name, tensor in engine.plain.state_dict().items()}
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return dict(get_model_state_dict(engine.model, options=options))


def save(
    run: RunDir, name: str, weights: dict[str, Any], about: dict[str, Any],
    state: dict[str, Any] | None = None,
) -> Path:  # fmt: skip
    """Write `checkpoints/NAME` whole or not at all; the old one stays until this one is there.

    `state` is what a resumed run needs besides the weights. Raises OSError (disk full).
    """
    target = run.checkpoints / name
    fresh = run.checkpoints / f".{name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    tensors = {key: tensor.contiguous() for key, tensor in weights.items()}
    save_file(tensors, fresh / "model.safetensors")
    if state is not None:
        torch.save(state, fresh / STATE_FILE)
    write_classes(fresh / "classes.json", tuple(about["classes"]))
    run.write(fresh / "about.json", {"format": 1, **about})
    _sync_folder(fresh)
    old = run.checkpoints / f".{name}.old"
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)
    return target


def describe(spec: RunSpec, classes: tuple[str, ...], task: str, **facts: Any) -> dict[str, Any]:
    """What someone needs to use the weights, without the run."""
    return {
        "model": spec.model,
        "num_classes": len(classes),
        "classes": classes,
        "task": task,
        "image_size": spec.data.image_size,
        **facts,
    }


def load_weights(model: nn.Module, path: Path) -> None:
    """Strict load of a checkpoint folder's weights into a plain timm model."""
    from safetensors.torch import load_file

    model.load_state_dict(load_file(path / "model.safetensors"), strict=True)


def _sync_folder(folder: Path) -> None:
    for path in folder.iterdir():
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
