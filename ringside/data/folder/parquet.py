"""The columns of a parquet file that can name files and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ringside.errors import DataError
from ringside.words import say


def read_parquet(path: Path) -> dict[str, list[object]]:
    """All columns of texts, numbers, truth values and lists of them; others are left aside.

    Raises `DataError` for what is no parquet file, and for one that holds the pictures themselves.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # One thread: a thread pool would not survive the fork of the loader workers.
        file = pq.ParquetFile(path, memory_map=False)
        fields = list(file.schema_arrow)
        plain = [field.name for field in fields if _is_plain(_element(field.type))]
        table = file.read(columns=plain, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(say("dataset.no_parquet", path=path, reason=reason)) from error
    embedded = [field.name for field in fields if _holds_bytes(field.type)]
    if embedded and not any(_is_text(_element(field.type)) for field in fields):
        raise DataError(say("dataset.embedded", path=path, column=embedded[0]))
    return {name: table.column(name).to_pylist() for name in plain} or {"": []}


def _element(kind: Any) -> Any:
    """The type of the items of a list, and of the values behind a dictionary."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _element(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _element(kind.value_type)
    return kind


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    return _is_text(kind) or bool(
        types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
    )


def _holds_bytes(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return any(_holds_bytes(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
