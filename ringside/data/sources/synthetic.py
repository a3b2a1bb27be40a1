"""Noise of any amount: what training costs when reading and decoding are free."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringside.data.images import ImageData, Task
from ringside.errors import DataError
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ringside.spec import DataSpec

NAME = "synthetic"
TITLE = "Made-up noise, for measuring the speed of training alone"
SYNTHETIC = True
DEFAULT_IMAGE_SIZE = 224
DEFAULT_COUNT = 12_800
NUM_CLASSES, NUM_VAL = 100, 256
MAX_COUNT = 10_000_000


@dataclass(frozen=True, eq=False)
class Noise:
    """Pictures of `size` pixels; picture `i` is always the same noise, its number `first + i`."""

    size: int
    first: int
    targets: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.targets)

    def name(self, i: int) -> str:
        return f"noise {self.first + i}"

    def read(self, i: int) -> bytes:
        """The same pixels as BMP, for who wants a file."""
        from PIL import Image

        encoded = io.BytesIO()
        Image.fromarray(self.pixels(i)).save(encoded, "BMP")
        return encoded.getvalue()

    def pixels(self, i: int) -> NDArray[np.uint8]:
        """uint8 `[size, size, 3]`, without a codec."""
        import numpy as np

        if not 0 <= i < len(self.targets):
            raise IndexError(i)
        rng = np.random.default_rng(self.first + i)
        return rng.integers(0, 256, (self.size, self.size, 3), dtype=np.uint8)

    def part(self, start: int, stop: int) -> Noise:
        return Noise(self.size, self.first + start, self.targets[start:stop])


def open_source(spec: DataSpec) -> ImageData:
    """`synthetic:N` has N training pictures with random labels; there is nothing to learn."""
    import numpy as np

    count = check_profile(spec.profile)
    rng = np.random.default_rng(0)
    train, val = (
        Noise(spec.image_size, first, rng.integers(0, 2, (n, NUM_CLASSES), dtype=np.uint8))
        for first, n in ((0, count), (count, NUM_VAL))
    )
    return ImageData(
        spec=spec,
        title=f"noise, {count:,} pictures",
        task="multi_label",
        classes=tuple(f"class {i:03}" for i in range(NUM_CLASSES)),
        train=train,
        val=val,
        synthetic=SYNTHETIC,
        notes=("The pictures are noise with random labels: only times mean something here.",),
        fingerprint=hashlib.blake2b(
            f"synthetic {count} {spec.image_size}".encode(), digest_size=16
        ).hexdigest(),
    )


def num_training(spec: DataSpec, enough: int) -> int:  # noqa: ARG001
    """As many as the profile says."""
    return check_profile(spec.profile)


def task_of(spec: DataSpec) -> Task:  # noqa: ARG001
    """Any number of labels a picture."""
    return "multi_label"


def check_profile(profile: str | None) -> int:
    """The number of training pictures that a profile means; DataError when it means none."""
    if profile is None:
        return DEFAULT_COUNT
    if not profile.isdecimal() or not 1 <= int(profile) <= MAX_COUNT:
        raise DataError(say("dataset.no_number", profile=profile, limit=MAX_COUNT))
    return int(profile)
