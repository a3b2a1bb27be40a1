"""Parquet files of this machine that hold the pictures, laid out as on the Hub or in any way."""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ringside.data.folder.columns import IMAGE_COLUMNS, known_column
from ringside.data.folder.listing import is_image_path
from ringside.data.folder.metadata import METADATA_NAMES
from ringside.data.splits import is_split_name
from ringside.errors import DataError
from ringside.words import say

SUFFIX = ".parquet"
MAX_DEPTH, MAX_FOLDERS = 2, 1_000
ONLY_SPLIT, OTHER_SPLIT = "train", "other"
MAX_HASHED_BYTES = 64 * 2**20
FOOTER_BYTES = 64 * 2**10


def parquet_files(path: Path) -> list[Path]:
    """The parquet files at `path` or up to two folders below it, sorted.

    None where single pictures or a metadata file lie there too, which say more: the first of them
    ends the search, so that a folder of pictures costs a few entries.
    """
    if path.is_file():
        return [path] if path.suffix.lower() == SUFFIX else []
    found: list[Path] = []
    waiting = [(path, 0)]
    for number, (folder, depth) in enumerate(waiting):
        for entry in _entries(folder):
            if is_image_path(entry.name) or entry.name in METADATA_NAMES:
                return []
            if entry.is_symlink() or entry.name.startswith("."):
                continue  # nothing outside of the folder is read
            if entry.is_dir() and depth < MAX_DEPTH:
                waiting.append((Path(entry.path), depth + 1))
            elif entry.name.lower().endswith(SUFFIX) and entry.is_file():
                found.append(Path(entry.path))
        if number > MAX_FOLDERS:
            return []
    return sorted(found)


def _entries(folder: Path) -> list[os.DirEntry[str]] | Any:
    try:
        return os.scandir(folder)
    except OSError:
        return []


def picture_columns(file: Path) -> list[str]:
    """The columns of a parquet file that hold the content of pictures; none for another file.

    They are bytes, or structs with a field `bytes` as `datasets` writes them. Beside a column that
    names the files of pictures only those count that are called image, or the like.
    """
    import pyarrow as pa

    try:
        fields = list(_schema(file))
    except DataError:
        return []
    held = [field.name for field in fields if _holds_pictures(field.type)]
    named = [name for name in held if known_column(name) in IMAGE_COLUMNS]
    texts = {known_column(field.name) for field in fields if pa.types.is_string(field.type)}
    return named or ([] if texts & set(IMAGE_COLUMNS) else held)


def _holds_pictures(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        place = kind.get_field_index("bytes")
        return place >= 0 and _is_binary(kind.field(place).type)
    return _is_binary(kind)


def _is_binary(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def rows_in(path: Path) -> tuple[int, int, int]:
    """How many rows, files and bytes lie at `path`; reads the footers alone.

    Raises `DataError` for a file that is no parquet any more.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = [file for several in files_by_split(path).values() for file in several]
    try:
        num_rows = sum(pq.read_metadata(file).num_rows for file in files)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error
    return num_rows, len(files), sum(file.stat().st_size for file in files)


def _schema(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(file, memory_map=False)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = str(error).splitlines()[0]
    return DataError(say("dataset.no_parquet_rows", path=path, reason=reason))


def features_of(files: Sequence[Path]) -> Any:
    """What `datasets` takes the columns for, with every column of pictures as one.

    Raises `DataError` where a file has other columns than the first.
    """
    import datasets

    schemas = [_schema(file) for file in files]
    columns = [set(schema.names) for schema in schemas]
    for file, names in zip(files, columns, strict=True):
        if names != columns[0]:
            raise DataError(
                say(
                    "dataset.other_columns",
                    path=file,
                    columns=", ".join(sorted(names)),
                    first=files[0].name,
                    others=", ".join(sorted(columns[0])),
                )
            )
    features, file = datasets.Features.from_arrow_schema(schemas[0]), files[0]
    return datasets.Features(features | {name: datasets.Image() for name in picture_columns(file)})


def files_by_split(path: Path) -> dict[str, list[Path]]:
    """The files of each split, by the beginning of their names or by their folders.

    One file, and files none of which names a split, are all one. Raises `DataError` where several
    folders hold files of a split each, for they are several data sets.
    """
    files = parquet_files(path)
    if not files:
        raise DataError(say("dataset.no_parquet_files", path=path))
    _require_one_set(path, files)
    names = {file: _split_of(file) for file in files}
    if len(files) == 1 or not any(map(is_split_name, names.values())):
        return {ONLY_SPLIT: files}
    found = defaultdict(list)
    for file, name in names.items():
        found[name].append(file)
    return dict(found)


def _require_one_set(path: Path, files: Sequence[Path]) -> None:
    folders = {
        "/".join(part for part in file.relative_to(path).parts[:-1] if not is_split_name(part))
        for file in files
        if file != path
    }
    if len(folders) > 1:
        names = ", ".join(sorted(folder or "." for folder in folders))
        raise DataError(say("dataset.several_sets", path=path, names=names))


def _split_of(file: Path) -> str:
    """`train` for train-00000-of-00002.parquet and for train/0000.parquet."""
    start = re.split(r"[\W\d_]", file.stem, maxsplit=1)[0].lower()
    folder = file.parent.name.lower()
    if is_split_name(folder) and not is_split_name(start):
        return folder
    return start or OTHER_SPLIT


def identity_of(files: Sequence[Path]) -> str:
    """Stands for the content: of large files, for what their footers say of every column chunk."""
    found = hashlib.blake2b()
    sizes = [file.stat().st_size for file in files]
    is_small = sum(sizes) <= MAX_HASHED_BYTES
    for file, size in zip(files, sizes, strict=True):
        with file.open("rb") as stream:
            if not is_small:
                stream.seek(max(0, size - FOOTER_BYTES))
            found.update(f"{file.name} {size} ".encode() + stream.read())
    return found.hexdigest()
