"""Weights to start from: a file that timm or torch wrote, or a checkpoint of an earlier run."""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from timm.models import load_state_dict
from torch import nn

from ringside.checkpoints import ABOUT, CLASSES, WEIGHTS, damaged_file, read_about
from ringside.data import read_classes
from ringside.errors import RingsideError, SetupError
from ringside.weights_file import fault_of
from ringside.words import say
from training.freezing import classifier_of

NUM_NAMED = 3
READ_ERRORS = (
    pickle.UnpicklingError, OSError, RuntimeError, SafetensorError, EOFError, ValueError,
)  # fmt: skip


def start_from(model: nn.Module, source: Path, classes: tuple[str, ...]) -> str | None:
    """Load `source` (a file, or a checkpoint's folder) into the plain model, on the CPU.

    A head made for other classes is left as it was initialised; the sentence returned says so. Any
    other difference in names or shapes is a SetupError.
    """
    if (source / ABOUT).is_file() and damaged_file(source, read_about(source), WEIGHTS):
        raise _unreadable(source, say("refused.damaged", name=WEIGHTS))
    weights = read_weights(source / WEIGHTS if source.is_dir() else source)
    own = model.state_dict()
    head = _head_names(model)
    reason = _unusable_head(source, weights, own, head, classes)
    if reason is not None:
        weights |= {name: own[name] for name in head}
    _refuse_differences(source, weights, own)
    _refuse_not_finite(source, weights)
    model.load_state_dict(weights, strict=True)
    if reason is None:
        return None
    return say("noted.fresh_head", source=source, reason=reason)


def read_weights(path: Path) -> dict[str, torch.Tensor]:
    """Tensors by timm's names, from `.safetensors` or a torch file; nothing else is unpickled.

    Of timm's training checkpoints the averaged weights are taken where there are any. The prefixes
    of DDP and torch.compile are dropped, in whatever order they were wrapped.
    """
    if not path.is_file():
        raise SetupError(say("refused.weights_gone", path=path))
    if fault := fault_of(path):
        raise _unreadable(path, fault)
    try:
        # timm keeps its command line, a Namespace of plain values, beside the weights.
        with torch.serialization.safe_globals([argparse.Namespace]):
            found = load_state_dict(str(path), use_ema=True, device="cpu", weights_only=True)
    except READ_ERRORS as error:
        raise _unreadable(path, _reason(error)) from None
    except AttributeError:
        raise _unreadable(path, "it holds no dictionary of tensors") from None
    weights = {_bare(name): value for name, value in found.items()}
    if not weights or not all(isinstance(value, torch.Tensor) for value in weights.values()):
        raise _unreadable(
            path, "it has no weights at the top, nor under state_dict, model or state_dict_ema"
        )
    return weights


def _reason(error: Exception) -> str:
    """Half a sentence; torch's advice to switch its own safety off is not passed on."""
    text = str(error).strip().partition("\n")[0].rstrip(".")
    if isinstance(error, pickle.UnpicklingError) or "weights_only" in text:
        return "it holds more than tensors, and code is not run"
    return text or type(error).__name__


def _bare(name: str) -> str:
    name = name.replace("_orig_mod.", "")
    while name.startswith("module."):
        name = name.removeprefix("module.")
    return name


def _head_names(model: nn.Module) -> list[str]:
    """Names of the classifier's parameters and buffers."""
    head = {id(layer) for layer in classifier_of(model)}
    prefixes = tuple(f"{name}." for name, layer in model.named_modules() if id(layer) in head)
    return [name for name in model.state_dict() if name.startswith(prefixes)]


def _unusable_head(
    source: Path, weights: dict[str, torch.Tensor], own: dict[str, Any], head: list[str],
    classes: tuple[str, ...],
) -> str | None:  # fmt: skip
    """Why the head of the file is not the one that is needed; None when it is, or has none."""
    for name in head:
        if name in weights and weights[name].shape != own[name].shape:
            return f"has {len(weights[name])} outputs, not {len(own[name])}"
    if (source / CLASSES).is_file():
        try:
            before = read_classes(source / CLASSES)
        except RingsideError:
            return None
        if before != classes:
            return "was trained for classes of other names or in another order"
    return None


def _refuse_differences(
    source: Path, weights: dict[str, torch.Tensor], own: dict[str, Any]
) -> None:
    faults = {
        "it lacks": [name for name in own if name not in weights],
        "the model has no": [name for name in weights if name not in own],
        "of another shape are": [
            name for name in own if name in weights and weights[name].shape != own[name].shape
        ],
    }
    found = "; ".join(f"{words} {_list(names)}" for words, names in faults.items() if names)
    if found:
        raise SetupError(say("refused.weights_unfit", path=source, found=found))


def _refuse_not_finite(source: Path, weights: dict[str, torch.Tensor]) -> None:
    """Else the loss would be none at the first step, and the learning rate be blamed for it."""
    found = [name for name, value in weights.items() if not torch.isfinite(value).all()]
    if found:
        raise _unreadable(source, say("refused.not_finite", names=_list(found)))


def _list(names: list[str]) -> str:
    """The first three names, and how many there are."""
    if len(names) <= NUM_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:NUM_NAMED])} and {len(names) - NUM_NAMED} more ({len(names)} in all)"


def _unreadable(path: Path, reason: str) -> SetupError:
    return SetupError(say("refused.weights_unreadable", path=path, reason=reason))
