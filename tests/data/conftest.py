"""Small pictures and folders, made on the spot."""

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringside.data import open_data, parse_data
from ringside.data.images import ImageData


@pytest.fixture
def encode() -> Callable[..., bytes]:
    """Encode a picture: `encode(image, "PNG")`; by default a small grey JPEG."""

    def encoded(image: Image.Image | None = None, kind: str = "JPEG", **options: object) -> bytes:
        content = io.BytesIO()
        (image or Image.new("RGB", (8, 8), (90, 90, 90))).save(content, kind, **options)
        return content.getvalue()

    return encoded


@pytest.fixture
def add_images(tmp_path: Path) -> Callable[..., Path]:
    """Write one distinct small PNG per relative path below `tmp_path` and return `tmp_path`."""

    def added(*paths: str) -> Path:
        for path in paths:
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            colour = tuple(hashlib.sha256(path.encode()).digest()[:3])
            Image.new("RGB", (4, 4), colour).save(target, "PNG")
        return tmp_path

    return added


@pytest.fixture
def opened() -> Callable[[Path], ImageData]:
    return lambda folder: open_data(parse_data(str(folder)))


@pytest.fixture
def labels_of() -> Callable[[ImageData], dict[str, list[str]]]:
    """The labels of every picture by its path below the data folder."""

    def found(data: ImageData) -> dict[str, list[str]]:
        root = f"{data.spec.path}/"
        return {
            split.name(i).removeprefix(root): [data.classes[k] for k in np.flatnonzero(row)]
            for split in (data.train, data.val)
            for i, row in enumerate(split.targets)
        }

    return found
