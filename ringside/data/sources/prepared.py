"""A set that `ringside data prepare` made: smaller pictures with the labels of their source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ringside.data.images import (
    FileImages,
    ImageData,
    ImageSplit,
    PackedBytes,
    Task,
    fingerprint_of,
)
from ringside.data.prepare.files import IMAGES, INDEX, MARKER, PIXELS, read_marker
from ringside.data.prepare.pictures import RawImages
from ringside.data.prepare.reading import damaged, read_prepared
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.spec import DataSpec

NAME = "prepared"
TITLE = "A prepared set"
SYNTHETIC = False
DEFAULT_IMAGE_SIZE = 224
BY_NAME = False


def claims_folder(path: Path) -> bool:
    """Whether the folder is a prepared set, or was one: its pictures alone would be another."""
    is_marked = (path / MARKER).is_file() and (path / INDEX).is_file()
    return is_marked or read_marker(path) is not None


def open_source(spec: DataSpec, skip: frozenset[str] = frozenset()) -> ImageData:
    """The set at `spec.path`, with the classes and the splits that its source had.

    Raises `DataError` when it is damaged or from a newer version; it cannot be used in part.
    """
    folder = Path(spec.path or "")
    marker, index = read_prepared(folder)
    if skip:
        raise damaged(folder, IMAGES, say("dataset.set_bad", name=min(skip)))
    targets = _targets(index.labels, len(marker.classes))
    bounds = {"train": (0, marker.num_train), "val": (marker.num_train, marker.num_images)}
    splits: dict[str, ImageSplit] = {}
    for split, (start, stop) in bounds.items():
        files = PackedBytes.pack(name.encode() for name in index.files[start:stop])
        if marker.recipe.format == "raw":
            splits[split] = RawImages(str(folder / PIXELS), start, files, targets[start:stop])
        else:
            splits[split] = FileImages(str(folder / IMAGES), files, targets[start:stop])
    made = f"{marker.key} {marker.pillow}"
    return ImageData(
        spec=spec,
        title=f"{marker.title} (prepared)",
        task=marker.task,
        classes=marker.classes,
        train=splits["train"],
        val=splits["val"],
        synthetic=marker.synthetic,
        notes=(say("data_note.prepared", data=marker.data, how=marker.recipe.label), *marker.notes),
        fingerprint=fingerprint_of(
            marker.classes,
            {
                split: (
                    splits[split].targets,
                    (f"{made} {name}".encode() for name in index.files[start:stop]),
                )
                for split, (start, stop) in bounds.items()
            },
        ),
    )


def num_training(spec: DataSpec, enough: int) -> int | None:  # noqa: ARG001
    """As many as the marker says; what a check found bad is refused already now."""
    if spec.skip:
        return len(open_source(spec, frozenset(spec.skip)).train)
    marker = read_marker(Path(spec.path or ""))
    return marker.num_train if marker else None


def task_of(spec: DataSpec) -> Task | None:
    """As the marker says."""
    marker = read_marker(Path(spec.path or ""))
    return marker.task if marker else None


def _targets(labels: list[list[int]], num_classes: int) -> NDArray[np.uint8]:
    import numpy as np

    targets = np.zeros((len(labels), num_classes), dtype=np.uint8)
    rows = np.repeat(np.arange(len(labels)), [len(row) for row in labels])
    targets[rows, [number for row in labels for number in row]] = 1
    return targets
