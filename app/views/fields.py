"""The fields of the launch form, read by name: the request and the data that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ringside.data import DataReport, parse_data, source_names
from ringside.durations import parse_duration
from ringside.errors import SpecError
from ringside.request import RunRequest
from ringside.spec import DataSpec
from ringside.words import say

Values = Mapping[str, Any]

Reports = Callable[[DataSpec], DataReport | None]
"""The last check of a data set, if there was one."""

LEAVE_OUT = "skip"
HUB = "hf:"
WAIT, BESIDE = "queue", "beside"
"""What to do while other runs hold the devices."""

OWN_FIELD = {"learning_rate": "learning_rate", "precision": "mixed_precision"}
"""Settings of a preset that have a field of their own."""


def request_of(values: Values) -> RunRequest:
    """The request that a filled form stands for; empty fields take the default."""
    return RunRequest(
        preset=_text(values, "preset") or "",
        data=data_text(values),
        model=_text(values, "model"),
        epochs=_whole(values, "epochs"),
        batch=_whole(values, "batch"),
        keep_global_batch=bool(values.get("keep_global_batch")),
        processes=_whole(values, "processes"),
        image_size=_whole(values, "image_size"),
        separator=_separator(values),
        seed=_whole(values, "seed"),
        weights=_text(values, "weights"),
        profile=_whole(values, "profile"),
        gpus=_gpus(values),
        queue=values.get("when_busy") == WAIT,
        beside=values.get("when_busy") == BESIDE,
        time_limit_s=_seconds(values, "time_limit"),
        retries=int(bool(values.get("retry"))),
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
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or (isinstance(value, float) and number != value):
        raise SpecError(say("train.whole", name=say(f"field.{name}"), value=str(value)[:80]))
    return number


def _gpus(values: Values) -> tuple[int, ...] | None:
    indices = (_whole({"gpus": one}, "gpus") for one in values.get("gpus") or ())
    return tuple(index for index in indices if index is not None) or None


def _seconds(values: Values, name: str) -> int | None:
    text = _text(values, name)
    return None if text is None else parse_duration(text)


def _overrides(values: Values) -> dict[str, str]:
    lines = [line.strip() for line in (_text(values, "overrides") or "").splitlines()]
    overrides = dict(_key_and_value(line) for line in lines if line)
    taken = {key.rpartition(".")[2] for key in overrides}
    for field, setting in OWN_FIELD.items():
        value = values.get(field)
        if value is None or value == "":
            continue
        if setting in taken:
            raise SpecError(say("train.twice", name=say(f"field.{field}")))
        overrides[setting] = _number(value, field) if field == "learning_rate" else str(value)
    return overrides


def _number(value: Any, name: str) -> str:
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        wrong = say("train.number", name=say(f"field.{name}"), value=str(value)[:80])
        raise SpecError(wrong) from None


def _key_and_value(line: str) -> tuple[str, str]:
    key, separator, value = line.partition("=")
    if not separator or not key.strip():
        raise SpecError(say("train.override_form", line=line[:80]))
    return key.strip(), value.strip()
