"""The names of timm's models, read as text: importing timm would import torch (8 s and a GPU)."""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path

from ringside.errors import SpecError, nearest

_REGISTERED = re.compile(r"^@register_model\s*\ndef (\w+)\(", re.MULTILINE)
SUGGESTED = (
    "resnet50", "resnet18", "resnet26", "resnext50_32x4d", "convnext_tiny", "vit_small_patch16_224",
)  # fmt: skip


@functools.cache
def model_names() -> frozenset[str]:
    """Names that timm's sources register; empty when timm is not installed."""
    found = importlib.util.find_spec("timm")
    if found is None or found.origin is None:
        return frozenset()
    folder = Path(found.origin).parent / "models"
    sources = (path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    return frozenset(name for text in sources for name in _REGISTERED.findall(text))


def check_model(name: str) -> str:
    """The name itself if timm knows it (a tag after a dot is allowed); else SpecError."""
    known = model_names()
    if known and name.partition(".")[0] not in known:
        hint = nearest(name, known) if len(name) > 3 else ""
        hint = hint if hint.startswith("Did") else "Any timm name works, such as resnet50."
        raise SpecError(f"timm has no model {name!r}. {hint}")
    return name
