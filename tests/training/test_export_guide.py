"""The code in an exported README gives what `ringside label` gives, for every kind of picture."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from safetensors.torch import save_file

from ringside.checkpoints import About
from ringside.data import decode_rgb, write_classes
from training.export_guide import guide
from training.label import Predictor

SIZE = 32
ABOUT = About(
    model="test_resnet", classes=("a", "b", "c"), task="multi_label", image_size=SIZE,
    mean=(0.5, 0.4, 0.3), std=(0.2, 0.3, 0.25),
)  # fmt: skip


def ramp(height: int = 50, width: int = 70) -> np.ndarray:
    """Smooth values from 0 to 1, float32 [height, width]; a crop or a turn changes them."""
    across, down = np.linspace(0.1, 1, width), np.linspace(0, 1, height) ** 2
    return (down[:, None] * across).astype(np.float32)


def bytes_of(*channels: np.ndarray) -> np.ndarray:
    return np.stack([(255 * channel).astype(np.uint8) for channel in channels], axis=-1)


def turned() -> tuple[Image.Image, dict[str, Any]]:
    exif = Image.Exif()
    exif[0x0112] = 6
    return Image.fromarray(bytes_of(ramp(), 1 - ramp(), ramp() / 2)), {"exif": exif}


def with_transparent_colour() -> tuple[Image.Image, dict[str, Any]]:
    return Image.fromarray(bytes_of(ramp())[..., 0]).convert("P"), {"transparency": 200}


def pillow(*arrays: np.ndarray) -> Callable[[], tuple[Image.Image, dict[str, Any]]]:
    return lambda: (Image.fromarray(*arrays), {})


KINDS: dict[str, Callable[[], tuple[Image.Image, dict[str, Any]]]] = {
    "rgb.png": pillow(bytes_of(ramp(), 1 - ramp(), ramp() / 2)),
    "deep.png": pillow((65535 * ramp()).astype(np.uint16)),
    "deep.tif": pillow((65535 * ramp()).astype(np.uint16)),
    "float.tif": pillow(ramp()),
    "alpha.png": pillow(bytes_of(ramp(), 1 - ramp(), ramp() / 2, ramp())),
    "grey_alpha.png": pillow(bytes_of(ramp(), 1 - ramp())),
    "palette.png": with_transparent_colour,
    "cmyk.jpg": lambda: (Image.fromarray(bytes_of(*[ramp()] * 3)).convert("CMYK"), {}),
    "bits.png": lambda: (Image.fromarray(ramp() > 0.4), {}),
    "turned.jpg": turned,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the guide describes, of a model that was not trained."""
    made = tmp_path_factory.mktemp("exported")
    torch.manual_seed(0)
    model = timm.create_model(ABOUT.model, num_classes=3)
    save_file(model.state_dict(), made / "model.safetensors")
    write_classes(made / "classes.json", ABOUT.classes)
    for name, make in KINDS.items():
        image, options = make()
        image.save(made / name, **options)
    Image.fromarray(3 * ramp()).save(made / "beyond.tif")
    return made


@pytest.fixture(scope="module")
def shown(folder: Path) -> dict[str, Any]:
    """The names that the code of the README defines."""
    (code,) = re.findall(r"```python\n(.*?)```", guide(ABOUT, "torch"), re.DOTALL)[:1]
    names: dict[str, Any] = {}
    exec(code.replace('Path(".")', f"Path({json.dumps(str(folder))})"), names)
    return names


@pytest.mark.parametrize("name", KINDS)
def test_it_prepares_and_labels_alike(name: str, folder: Path, shown: dict[str, Any]) -> None:
    path = folder / name
    with Image.open(path) as image:
        pixels = np.asarray(shown["upright_rgb"](image, path))
    assert np.array_equal(pixels, decode_rgb(path.read_bytes(), name))
    assert pixels.std() > 20  # nothing was cut to one value
    found = shown["probabilities"](torch.stack([shown["prepare"](path)]))
    ((_, expected),) = Predictor(folder, ABOUT).predict([str(path)])
    # Pillow resizes with 8-bit weights, the trainer with torch: a level of 255 here and there.
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=0, atol=5e-3)


def test_what_label_refuses_it_refuses(folder: Path, shown: dict[str, Any]) -> None:
    path = folder / "beyond.tif"
    with pytest.raises(ValueError, match=r"beyond\.tif: grey values beyond 0 to 1"):
        shown["prepare"](path)
    ((_, refused),) = Predictor(folder, ABOUT).predict([str(path)])
    assert "expected 0 to 1" in str(refused)
