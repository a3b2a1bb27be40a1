"""The fields of the launch form, read by name: the request and the data that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringside.data import parse_data, source_names
from ringside.errors import SpecError
from ringside.request import RunRequest
from ringside.spec import DataSpec
from ringside.words import say

Values = Mapping[str, Any]

HUB = "hf:"


def request_of(values: Values) -> RunRequest:
    """The request that a filled form stands for; empty fields take the default."""
    return RunRequest(
        preset=values.get("preset") or "",
        data=data_text(values),
        model=_text(values, "model"),
        epochs=_whole(values, "epochs"),
        batch=_whole(values, "batch"),
        keep_global_batch=bool(values.get("keep_global_batch")),
        processes=_whole(values, "processes"),
        image_size=_whole(values, "image_size"),
        separator=_separator(values),
        seed=_whole(values, "seed"),
        overrides=_overrides(values),
        request_id=_text(values, "request_id"),
    )


def data_text(values: Values) -> str:
    """What `--data` would be: the source, or for one's own pictures the path or name."""
    source = _text(values, "source") or ""
    if source != "folder":
        return source
    path = _text(values, "folder")
    if path is None:
        return source
    # A bare name could be taken for a source; with ./ it is a folder for sure.
    return path if path.startswith(("/", "~", ".", HUB)) else f"./{path}"


def data_spec(values: Values) -> DataSpec:
    """The data that the form names; raises DataError with one sentence."""
    return parse_data(
        data_text(values), image_size=_whole(values, "image_size"), separator=_separator(values)
    )


def is_own(values: Values) -> bool:
    """Whether the data are a person's own, a folder, a table or of the Hub, and no source."""
    name = data_text(values).partition(":")[0]
    return name not in {source.name for source in source_names()} - {"folder"}


def _text(values: Values, name: str) -> str | None:
    return str(values.get(name) or "").strip() or None


def _separator(values: Values) -> str | None:
    """The field is shown for one's own data only, and counts only there."""
    return _text(values, "separator") if is_own(values) else None


def _whole(values: Values, name: str) -> int | None:
    value = values.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, float) and not value.is_integer():
        raise SpecError(say("train.whole", name=say(f"field.{name}"), value=value))
    return int(value)


def _overrides(values: Values) -> dict[str, str]:
    lines = [line.strip() for line in (_text(values, "overrides") or "").splitlines()]
    overrides = dict(_key_and_value(line) for line in lines if line)
    rate = values.get("learning_rate")
    if rate is not None:
        if {"learning_rate", "training.learning_rate"} & set(overrides):
            raise SpecError(say("train.twice"))
        overrides["learning_rate"] = repr(float(rate))
    return overrides


def _key_and_value(line: str) -> tuple[str, str]:
    key, separator, value = line.partition("=")
    if not separator or not key.strip():
        raise SpecError(say("train.override_form", line=line[:80]))
    return key.strip(), value.strip()
