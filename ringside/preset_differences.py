"""In what two presets, or a preset and a run, differ: settings by their dotted names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ringside.presets import PresetFile
from ringside.spec import FsdpConfig, RunSpec

PARTS = ("accelerate", "training", "environment")


class SettingPair(msgspec.Struct, frozen=True, kw_only=True):
    """One setting in both; None where one of them does not have it."""

    name: str
    first: Any
    second: Any

    @property
    def differs(self) -> bool:
        """Whether the two values are not the same."""
        return bool(self.first != self.second)


def settings(content: PresetFile | RunSpec) -> dict[str, Any]:
    """Every setting with its value, also those at their default, as `training.compile`."""
    tree = msgspec.to_builtins(content)
    return {name: value for part in PARTS for name, value in _flat(part, tree[part])}


def pairs(first: PresetFile | RunSpec, second: PresetFile | RunSpec) -> tuple[SettingPair, ...]:
    """All settings side by side, in the order of the file."""
    left, right = settings(first), settings(second)
    names = dict.fromkeys([*left, *right])
    return tuple(
        SettingPair(name=name, first=left.get(name), second=right.get(name)) for name in names
    )


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            # The block's name says nothing: each of its keys begins with fsdp_.
            inside = key if key in FsdpConfig.__struct_fields__ else f"{name}.{key}"
            yield from _flat(inside, inner)
    elif not name.endswith("fsdp_config"):
        yield name, value
