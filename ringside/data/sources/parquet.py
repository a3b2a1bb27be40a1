"""Parquet files that hold the pictures, one or a folder of them, through the `datasets` library."""

from __future__ import annotations

from pathlib import Path

from ringside.data.hub.files import parquet_files, picture_columns
from ringside.data.hub.opening import open_rows
from ringside.data.hub.reading import read_parquet_files
from ringside.data.images import ImageData
from ringside.spec import DataSpec

NAME = "parquet"
TITLE = "Parquet files with pictures"
SYNTHETIC = False
DEFAULT_IMAGE_SIZE = 224
BY_NAME = False
READS_TABLES = True


def claims_folder(path: Path) -> bool:
    """Whether parquet files with pictures in them are all the pictures that lie there."""
    files = parquet_files(path)
    return bool(files) and bool(picture_columns(files[0]))


def open_source(spec: DataSpec, skip: frozenset[str] = frozenset()) -> ImageData:
    """The pictures of the files at `spec.path`; nothing is decoded here.

    `skip` names rows as `check_data` does, such as `train/17`.
    """
    title = "/".join(Path(spec.path or "").resolve().parts[-2:])
    return open_rows(spec, read_parquet_files(spec), title, skip)


def num_training(spec: DataSpec, enough: int) -> int | None:  # noqa: ARG001
    """None, because the files would have to be copied; after a check they are."""
    return len(open_source(spec, frozenset(spec.skip)).train) if spec.skip else None
