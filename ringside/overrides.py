"""`--set KEY=VALUE`: which setting a key means, and its value as the type of the setting wants it.

What a setting takes is said from its type: the bounds and choices that stand in `ringside.spec`.
"""

from __future__ import annotations

import functools
import math
import typing
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ringside import yaml_text
from ringside.errors import PresetError, SpecError, nearest
from ringside.presets import Preset, PresetFile
from ringside.spec import AccelerateSettings, FsdpConfig, TrainingSettings
from ringside.words import say

FSDP_PART = "accelerate.fsdp_config"
MAX_SHOWN = 40

OPTION_OF = {
    "data": "--data", "model": "--model", "epochs": "--epochs", "batch": "--batch",
    "batch_size": "--batch", "global_batch": "--batch", "processes": "--processes",
    "num_processes": "--processes", "image_size": "--image-size", "separator": "--separator",
    "seed": "--seed", "weights": "--weights", "profile": "--profile",
    "profile_steps": "--profile", "gpus": "--gpus", "gpu_ids": "--gpus", "queue": "--queue",
    "beside": "--beside", "time_limit": "--time-limit", "time_limit_s": "--time-limit",
    "retry": "--retry", "retries": "--retry", "keep_global_batch": "--keep-global-batch",
    "keeps_global_batch": "--keep-global-batch",
}  # fmt: skip
"""What a person may take for a setting, and the option of `ringside run` that it is."""

_WORDS: dict[type[msgspec.inspect.Type], str] = {
    msgspec.inspect.BoolType: "setting.true_or_false",
    msgspec.inspect.StrType: "setting.text",
    msgspec.inspect.VarTupleType: "setting.names",
}

Place = tuple[str, str]
"""The part of a preset (accelerate, training, environment) and a name in it."""


def parse_overrides(pairs: Iterable[str]) -> dict[str, str]:
    """`--set KEY=VALUE` options as a dict; SpecError for a setting that is given twice."""
    items = []
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise SpecError(say("setting.no_pair", pair=pair))
        items.append((key.strip(), value.strip()))
    _refuse_twice(items)
    return dict(items)


def with_overrides(preset: Preset, overrides: Mapping[str, str]) -> PresetFile:
    """The preset's content with every setting of `overrides` in place; SpecError for a bad one."""
    if not overrides:
        return preset.file
    _refuse_twice(overrides.items())
    tree: dict[str, Any] = msgspec.to_builtins(preset.file)
    for key, text in overrides.items():
        part, name = locate(key)
        place = tree[part]
        if part == "environment":
            place[name] = text
            continue
        if part == "accelerate" and name in FsdpConfig.__struct_fields__:
            place["fsdp_config"] = place = place.get("fsdp_config") or {}
        place[name] = read_value(name, text)
    return yaml_text.Document(tree, {}, "--set").convert(PresetFile)


def locate(key: str) -> Place:
    """Where a key belongs; it is dotted, or the bare name of a setting. SpecError if there is none.

    A setting of FSDP is found under `accelerate`, with or without `fsdp_config` before its name.
    """
    part, _, name = key.rpartition(".")
    if name in FsdpConfig.__struct_fields__ and part in ("", "accelerate", FSDP_PART):
        return "accelerate", name
    if part == "environment":
        return part, name
    for candidate, kind in (("training", TrainingSettings), ("accelerate", AccelerateSettings)):
        if part in ("", candidate) and name in kind.__struct_fields__:
            if name == "num_processes":
                raise _is_option(name)
            return candidate, name
    if part in ("", "data") and name.replace("-", "_") in OPTION_OF:
        raise _is_option(name)
    known = [*TrainingSettings.__struct_fields__, "mixed_precision"]
    raise SpecError(say("setting.unknown", name=key, hint=nearest(name, known)))


def _is_option(name: str) -> SpecError:
    option = OPTION_OF[name.replace("-", "_")]
    return SpecError(say("setting.use_option", name=name, option=option))


def read_value(name: str, text: str) -> Any:
    """The value that `text` means for this setting; SpecError that says what the setting takes.

    Scalars are those of the preset files (YAML 1.2); a list is one word or several with commas.
    """
    kind = _types()[name]
    info = msgspec.inspect.type_info(kind)
    try:
        value = yaml_text.load_text(text or '""', origin="--set").value
        if isinstance(info, msgspec.inspect.VarTupleType) and isinstance(value, str):
            value = [word.strip() for word in value.split(",") if word.strip()]
        msgspec.convert(value, kind)
    except (PresetError, msgspec.ValidationError):
        takes = wanted(info, "finite" if _is_infinite(text) else "number")
        said = say("setting.must_be", name=name, wanted=takes, shown=_shown(text))
        raise SpecError(said) from None
    return value


def wanted(info: msgspec.inspect.Type, number: str = "number") -> str:
    """What a type takes, in words: `a whole number of at least 1`, `true or false`.

    `number` is the key of the word for one with decimals.
    """
    if isinstance(info, msgspec.inspect.UnionType):
        *others, last = [wanted(one, number) for one in info.types]
        return say("setting.one_of", names=", ".join(others), last=last)
    if isinstance(info, msgspec.inspect.LiteralType):
        return _either(["false" if value is False else str(value) for value in info.values])
    if isinstance(info, msgspec.inspect.IntType):
        return _number("whole", info)
    if isinstance(info, msgspec.inspect.FloatType):
        return _number(number, info)
    if isinstance(info, msgspec.inspect.NoneType):
        return "null"
    return say(_WORDS.get(type(info), "setting.mapping"))


def _number(kind: str, info: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> str:
    bounds = _bounds(info)
    return say(f"setting.{kind}_within", bounds=bounds) if bounds else say(f"setting.{kind}")


def _bounds(info: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return say("setting.from_to", low=_figure(info.ge), high=_figure(info.le))
    limits = {"above": info.gt, "at_least": info.ge, "below": info.lt, "at_most": info.le}
    if isinstance(info, msgspec.inspect.IntType) and info.lt is not None:
        limits |= {"below": None, "at_most": info.lt - 1}  # 2147483647 is a number to try
    said = [
        say(f"setting.{name}", limit=_figure(limit))
        for name, limit in limits.items()
        if limit is not None
    ]
    return functools.reduce(_both, said) if said else ""


def _figure(limit: float) -> str:
    """A bound in full, `2147483647`; without a point where it is whole."""
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _is_infinite(text: str) -> bool:
    """Whether a person wrote no finite number: `inf`, YAML's `.inf`, or one too large for any."""
    try:
        return not math.isfinite(float(text.replace(".inf", "inf").replace(".nan", "nan")))
    except ValueError:
        return False


def _both(first: str, second: str) -> str:
    return say("setting.both", first=first, second=second)


def _either(words: list[str]) -> str:
    if len(words) == 1:
        return words[0]
    return say("setting.either", names=", ".join(words[:-1]), last=words[-1])


def _shown(text: str) -> str:
    """What a person typed, on one line and not for ever."""
    short = text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
    return (short if short.isprintable() else repr(short)) or say("request.empty")


@functools.cache
def _types() -> dict[str, Any]:
    """The annotated type of every setting by its bare name; no two parts share one."""
    kinds = (TrainingSettings, AccelerateSettings, FsdpConfig)
    return {
        name: hint
        for kind in kinds
        for name, hint in typing.get_type_hints(kind, include_extras=True).items()
        if name in kind.__struct_fields__
    }


def _refuse_twice(items: Iterable[tuple[str, str]]) -> None:
    seen: dict[Place, str] = {}
    for key, text in items:
        place, said = locate(key), f"{key}={_shown(text)}"
        if place in seen:
            raise SpecError(say("setting.twice", first=seen[place], second=said))
        seen[place] = said
