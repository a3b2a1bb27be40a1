"""Which columns of a data set of the Hub hold the pictures and the labels, by their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ringside.data.folder.columns import IMAGE_COLUMNS, known_column
from ringside.data.folder.labels import (
    MANY_LABELS,
    ONE_LABEL,
    Labels,
    read_column,
    read_flags,
)
from ringside.data.folder.table import Table
from ringside.errors import DataError
from ringside.spec import Separator
from ringside.words import say

Kind = Literal["one", "many", "text", "number", "flag"]


def find_image_column(features: Mapping[str, Any], label: str) -> str:
    """The column of type Image; of several the one with the most usual name."""
    import datasets

    found = [name for name, kind in features.items() if isinstance(kind, datasets.Image)]
    by_name = {known_column(name): name for name in reversed(found)}
    named = [by_name[name] for name in IMAGE_COLUMNS if name in by_name]
    if len(found) == 1 or named:
        return (named or found)[0]
    which = (
        say("hub.several_images", names=", ".join(found)) if found else say("hub.no_images_column")
    )
    raise DataError(say("hub.no_images", label=label, which=which, columns=", ".join(features)))


def read_hub_labels(
    features: Mapping[str, Any], tables: Sequence[Any], label: str, separator: Separator | None
) -> Labels:
    """The labels of all rows of `tables` (Arrow tables with these `features`), in their order.

    A column called label or labels (or the like) counts first, whatever holds names in it; then
    the only column of classes, of lists, of texts; then all columns of truth values, one per label.
    A class below 0 is no label. Raises `DataError` when that is ambiguous or there is none.
    """
    kinds = {name: kind for name, feature in features.items() if (kind := _kind(feature))}
    columns = _label_columns(kinds, label)
    values = {
        name: [v for table in tables for v in _values(features[name], table.column(name))]
        for name in columns
    }
    num_rows = sum(table.num_rows for table in tables)
    table = Table(Path(label), {"": [""] * num_rows, **values}, "")
    if kinds[columns[0]] == "flag":
        if separator is not None:
            raise DataError(say("hub.one_column_per_label", label=label))
        return read_flags(table)
    return read_column(table, columns[0], _holds_many(columns[0], kinds), separator)


def _kind(feature: Any) -> Kind | None:
    import datasets

    item = _item(feature)
    if isinstance(feature, datasets.ClassLabel):
        return "one"
    if item is not None:
        return "many" if isinstance(item, datasets.ClassLabel) or _is(item, "string") else None
    for kind, types in (("text", "string"), ("flag", "bool"), ("number", "int")):
        if _is(feature, types):
            return kind  # type: ignore[return-value]
    return None


def _item(feature: Any) -> Any:
    """What a list holds; None for what is no list. Older features are plain Python lists."""
    if isinstance(feature, list):
        return feature[0]
    return feature.feature if type(feature).__name__ in ("List", "LargeList", "Sequence") else None


def _is(feature: Any, dtype: str) -> bool:
    found = str(getattr(feature, "dtype", "")).removeprefix("large_").removeprefix("u")
    return found.startswith(dtype)


def _label_columns(kinds: Mapping[str, Kind], label: str) -> list[str]:
    for names in (("label", "labels"), (*ONE_LABEL, *MANY_LABELS)):
        named = [name for name in kinds if known_column(name) in names and kinds[name] != "flag"]
        if len(named) > 1:
            raise _ambiguous(label, named)
        if named:
            return named
    for kind in ("one", "many", "text"):
        found = [name for name in kinds if kinds[name] == kind]
        if len(found) > 1 and kind != "text":
            raise _ambiguous(label, found)
        if len(found) == 1:
            return found
    flags = [name for name in kinds if kinds[name] == "flag"]
    if not flags:
        raise DataError(
            say("hub.no_labels", label=label, found=", ".join(kinds) or say("hub.no_columns"))
        )
    return flags


def _ambiguous(label: str, columns: Sequence[str]) -> DataError:
    return DataError(say("hub.several_labels", label=label, columns=", ".join(columns)))


def _holds_many(column: str, kinds: Mapping[str, Kind]) -> bool:
    is_called_one = known_column(column) in ONE_LABEL
    return kinds[column] == "many" or (kinds[column] == "text" and not is_called_one)


def _values(feature: Any, column: Any) -> list[object]:
    """Names instead of the numbers of classes; everything else as it is stored."""
    import datasets

    stored: list[Any] = column.to_pylist()
    inner = feature if isinstance(feature, datasets.ClassLabel) else _item(feature)
    if not isinstance(inner, datasets.ClassLabel):
        return stored

    def name(number: int | None) -> str | None:
        return inner.names[number] if number is not None and number >= 0 else None

    if isinstance(feature, datasets.ClassLabel):
        return [name(number) for number in stored]
    return [[name(number) for number in numbers or ()] for numbers in stored]
