"""Synthetic catalogue pictures, drawn when they are read or written to disk beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ringside.data.classes import multi_hot
from ringside.data.images import ImageData, Task, fingerprint_of
from ringside.data.products.files import GENERATOR_VERSION, METADATA_NAME, read_manifest
from ringside.data.products.labels import (
    MATERIALS,
    PROFILE_OF,
    Profile,
    class_names,
    draw_scene,
    is_val,
    side_px,
)
from ringside.data.sources import folder
from ringside.errors import DataError, nearest
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.spec import DataSpec

NAME = "products"
TITLE = "Synthetic product pictures"
SYNTHETIC = True
DEFAULT_IMAGE_SIZE = 64
PROFILES = {name: profile.image_size for name, profile in PROFILE_OF.items()}

SEED = 0
SYNTHETIC_NOTE = (
    "Synthetic pictures: scores here compare strategies and say nothing about real products."
)
HARD_NOTE = "Patterns and departments are the hard labels, backgrounds and overlays the easy ones."


def claims_folder(path: Path) -> bool:
    """Whether the folder is a product set written by `ringside data make`."""
    return read_manifest(path) is not None


def open_source(spec: DataSpec, skip: frozenset[str] = frozenset()) -> ImageData:
    """The pictures of `spec.profile` at `spec.image_size`, or those written to `spec.path`.

    Of written ones the files in `skip` are left out.
    """
    return _drawn(spec) if spec.path is None else _written(spec, Path(spec.path), skip)


@dataclass(frozen=True, eq=False)
class DrawnImages:
    """Pictures that are drawn in `read`; `side` in pixels, None for the profile's own sizes."""

    profile: Profile
    side: int | None
    indices: NDArray[np.int64]
    targets: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.indices)

    def name(self, i: int) -> str:
        return f"synthetic product {int(self.indices[i])}"

    def read(self, i: int) -> bytes:
        from ringside.data.products.render import render_jpeg

        index = int(self.indices[i])
        scene, _ = draw_scene(self.profile, SEED, index)
        return render_jpeg(scene, self.side or side_px(self.profile, SEED, index), SEED, index)

    def part(self, start: int, stop: int) -> DrawnImages:
        return replace(self, indices=self.indices[start:stop], targets=self.targets[start:stop])


def _drawn(spec: DataSpec) -> ImageData:
    name = spec.profile or next(iter(PROFILES))
    if name not in PROFILE_OF:
        raise DataError(
            say("dataset.no_profile", name=NAME, profile=name, hint=nearest(name, PROFILE_OF))
        )
    profile = PROFILE_OF[name]
    classes = class_names(profile)
    side = None if profile.sides_px else spec.image_size
    train, val = (_split(profile, side, classes, is_for_val) for is_for_val in (False, True))
    return ImageData(
        spec=spec,
        title=f"{TITLE} ({name})",
        task="multi_label",
        classes=classes,
        train=train,
        val=val,
        synthetic=SYNTHETIC,
        notes=(SYNTHETIC_NOTE, HARD_NOTE) if profile.materials == MATERIALS else (SYNTHETIC_NOTE,),
        fingerprint=fingerprint_of(classes, {"train": _hashed(train), "val": _hashed(val)}),
    )


def num_training(spec: DataSpec, enough: int) -> int | None:
    """Those of the profile, or those written to `spec.path`."""
    if spec.path is not None:
        return folder.num_training(spec, enough)
    profile = PROFILE_OF.get(spec.profile or next(iter(PROFILES)))
    if profile is None:
        return None
    return sum(not is_val(profile, i) for i in range(profile.num_images))


def task_of(spec: DataSpec) -> Task | None:
    """Drawn pictures have several labels; written ones what their tables say."""
    return "multi_label" if spec.path is None else folder.task_of(spec)


def _split(
    profile: Profile, side: int | None, classes: tuple[str, ...], is_for_val: bool
) -> DrawnImages:
    import numpy as np

    indices = [i for i in range(profile.num_images) if is_val(profile, i) == is_for_val]
    labels = [draw_scene(profile, SEED, i)[1] for i in indices]
    return DrawnImages(profile, side, np.array(indices, dtype=np.int64), multi_hot(labels, classes))


def _hashed(split: DrawnImages) -> tuple[NDArray[np.uint8], Iterator[bytes]]:
    """The pixels follow from version, seed, size and index; drawing them would not be cheap."""
    made_of = f"{GENERATOR_VERSION} {SEED} {split.side}"
    return split.targets, (f"{made_of} {index}".encode() for index in split.indices)


def _written(spec: DataSpec, path: Path, skip: frozenset[str]) -> ImageData:
    unfinished = [
        split for split in ("train", "val") if not (path / split / METADATA_NAME).exists()
    ]
    if unfinished:
        raise DataError(say("dataset.set_unfinished", path=path))
    data = folder.open_source(spec, skip)
    notes = (SYNTHETIC_NOTE, *data.notes)
    return replace(data, title=f"{TITLE} ({data.title})", synthetic=SYNTHETIC, notes=notes)
