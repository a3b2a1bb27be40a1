"""The names of timm's models, read as text: importing timm would import torch (8 s and a GPU)."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterable
from pathlib import Path

from ringside.errors import SpecError, closest
from ringside.spec import FsdpConfig, RunSpec
from ringside.words import say

_REGISTERED = re.compile(r"^@register_model\s*\ndef (\w+)\(", re.MULTILINE)
_IMPORTED = re.compile(r"^from (?:\.|timm\.models\.)(\w+) import", re.MULTILINE)
_BUILDS_RESNET = re.compile(r"build_model_with_cfg\(\s*ResNet,")
SUGGESTED = (
    "resnet50", "resnet18", "resnet26", "resnext50_32x4d", "convnext_tiny", "vit_small_patch16_224",
)  # fmt: skip


@functools.cache
def _sources() -> dict[str, str]:
    """The text of each module of timm.models by its name; empty when timm is not installed."""
    found = importlib.util.find_spec("timm")
    if found is None or found.origin is None:
        return {}
    folder = Path(found.origin).parent / "models"
    return {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}


@functools.cache
def _modules() -> dict[str, str]:
    """The module of timm.models that registers each model."""
    found = ((name, _REGISTERED.findall(text)) for name, text in _sources().items())
    return {model: module for module, models in found for model in models}


def model_names() -> frozenset[str]:
    """Names that timm's sources register; empty when timm is not installed."""
    return frozenset(_modules())


def is_resnet(name: str) -> bool | None:
    """Whether the model is of timm's class ResNet, as its module says; None where it is unknown."""
    module = _module_of(name)
    return None if module is None else bool(_BUILDS_RESNET.search(_sources()[module]))


def mentions_class(name: str, classes: Iterable[str]) -> bool | None:
    """Whether the model's module, or one that it imports, names one of these classes.

    Without such a word the model has no such block; with one, only the model itself can tell. None
    where the model is unknown.
    """
    module = _module_of(name)
    if module is None:
        return None
    word = re.compile(rf"\b({'|'.join(map(re.escape, classes))})\b")
    return any(word.search(_sources()[each]) for each in _with_imports(module))


def refuse_unable(spec: RunSpec) -> None:
    """SpecError for a model that the strategy cannot take, as far as the model's name tells.

    Blocks that a person named for FSDP are left to the trainer, which has the model itself.
    """
    if spec.strategy == "model_parallel" and is_resnet(spec.model) is False:
        raise SpecError(say("request.no_resnet", model=spec.model))
    config, usual = spec.accelerate.fsdp_config, FsdpConfig()
    if config is None or config.fsdp_auto_wrap_policy != "TRANSFORMER_BASED_WRAP":
        return
    blocks = config.fsdp_transformer_layer_cls_to_wrap
    usual_blocks = usual.fsdp_transformer_layer_cls_to_wrap
    if blocks == usual_blocks and mentions_class(spec.model, blocks.split(",")) is False:
        named = functools.reduce(_or, blocks.split(","))
        raise SpecError(say("request.no_blocks", blocks=named, model=spec.model))


def _or(names: str, last: str) -> str:
    return say("setting.either", names=names, last=last)


def _module_of(name: str) -> str | None:
    return _modules().get(name.partition(".")[0])


def _with_imports(module: str) -> set[str]:
    """The module and those of timm.models that it imports, however far away."""
    found, new = set(), {module}
    while new:
        found |= new
        named = {name for each in new for name in _IMPORTED.findall(_sources()[each])}
        new = (named & _sources().keys()) - found
    return found


def check_model(name: str) -> str:
    """The name itself if timm knows it (a tag after a dot is allowed); else SpecError."""
    known = model_names()
    if not name.strip():
        raise SpecError(say("request.no_model", name=name, hint=say("request.any_model")))
    if known and name.partition(".")[0] not in known:
        close = closest(name, sorted(known)) if len(name) > 3 else None
        hint = say("hint.nearest", name=close) if close else say("request.any_model")
        raise SpecError(say("request.no_model", name=name, hint=hint))
    return name
