"""Emoji drawings with category, subcategory and colour labels, shipped with the package."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringside.data.classes import class_list, multi_hot
from ringside.data.images import ImageData, PackedBytes, StoredImages, Task, fingerprint_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.spec import DataSpec

NAME = "emoji"
TITLE = "Emoji art (Fluent 3D and Noto)"
SYNTHETIC = False
DEFAULT_IMAGE_SIZE = 32

FILE = Path(__file__).parents[1] / "emoji" / "emoji.parquet"
NOTES = (
    "Emoji art, not photographs: scores here compare strategies and say nothing about products.",
    "Both drawings of an emoji are in the same split, so validation shows unseen emoji only.",
    "Colours are easy, subcategories with few emoji are hard.",
)


def open_source(spec: DataSpec) -> ImageData:
    """The shipped pictures: 64 px WebP, multi-label, split by emoji."""
    import pyarrow.parquet as pq

    # One thread: a thread pool would not survive the fork of the loader workers.
    rows = pq.ParquetFile(FILE).read(use_threads=False).to_pylist()
    classes = class_list(row["labels"] for row in rows)
    train, val = (_split(rows, split, classes) for split in ("train", "val"))
    return ImageData(
        spec=spec,
        title=TITLE,
        task="multi_label",
        classes=classes,
        train=train,
        val=val,
        synthetic=SYNTHETIC,
        notes=NOTES,
        fingerprint=fingerprint_of(classes, {"train": _hashed(train), "val": _hashed(val)}),
    )


@cache
def _num_training() -> int:
    import pyarrow.parquet as pq

    splits = pq.ParquetFile(FILE).read(columns=["split"], use_threads=False).column("split")
    return int(splits.to_pylist().count("train"))


def num_training(spec: DataSpec, enough: int) -> int:  # noqa: ARG001
    """All of them, whatever is enough."""
    return _num_training()


def task_of(spec: DataSpec) -> Task:  # noqa: ARG001
    """Any number of labels a picture."""
    return "multi_label"


def _split(rows: list[dict[str, Any]], split: str, classes: tuple[str, ...]) -> StoredImages:
    kept = [row for row in rows if row["split"] == split]
    return StoredImages(
        names=PackedBytes.pack(_name(row).encode() for row in kept),
        images=PackedBytes.pack(row["image"] for row in kept),
        targets=multi_hot([row["labels"] for row in kept], classes),
    )


def _name(row: dict[str, Any]) -> str:
    return f"emoji {row['code']} {row['name']} ({row['style']})"


def _hashed(split: StoredImages) -> tuple[NDArray[np.uint8], Iterator[bytes]]:
    return split.targets, (split.names[i] + split.images[i] for i in range(len(split)))
