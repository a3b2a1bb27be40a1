"""The README.md of an exported folder: what is in it, and code that loads it and labels a picture.

The code uses no Ringside; a test runs it as it stands.
"""

from __future__ import annotations

from ringside.checkpoints import About
from training.model import has_fixed_size

_HEAD = """\
# {model}, {num_classes} classes

{origin}

| file | content |
| --- | --- |
| `model.safetensors` | weights and buffers under timm's names |
| `{program}` | the same as a program for any number of pictures ({kind}) |
| `classes.json` | names of the classes, in the order of the outputs |
| `thresholds.json` | per class the probability above which F1 was highest on validation images |
| `about.json` | model, task, image size, normalisation, origin |

Input: float32 `[n, 3, {size}, {size}]`, RGB from 0 to 1, less the mean, divided by the deviation.
Output: logits `[n, {num_classes}]`; {activation} turns them into probabilities.

## With timm

```python
import json
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image, ImageOps
from safetensors.torch import load_file

folder = Path(".")  # where this file is
classes = json.loads((folder / "classes.json").read_text())["classes"]
mean = torch.tensor({mean}).view(3, 1, 1)
std = torch.tensor({std}).view(3, 1, 1)

model = timm.create_model("{model}", {arguments})
model.load_state_dict(load_file(folder / "model.safetensors"))
model.eval()


def upright_rgb(image, path):
    image = ImageOps.exif_transpose(image)
    if image.mode == "F" or image.mode.startswith("I"):  # grey of more than 8 bits
        top = 1.0 if image.mode == "F" else 65535.0
        grey = np.asarray(image, dtype=np.float64)
        if not (grey.min() >= 0 and grey.max() <= top):
            raise ValueError(f"{{path}}: grey values beyond 0 to {{top:g}}")
        image = Image.fromarray(np.rint(grey * (255 / top)).astype(np.uint8))
    elif image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image.convert("RGB")


def prepare(path):
    image = upright_rgb(Image.open(path), path)
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    square = image.crop((left, top, left + side, top + side))
    square = square.resize(({size}, {size}), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(square)).permute(2, 0, 1) / 255
    return (pixels - mean) / std


def probabilities(images):
    with torch.no_grad():
        return model(images).{activate}


# probabilities(torch.stack([prepare("photo.jpg")]))
```
"""

_TORCH = """
## Without timm

```python
program = torch.export.load(folder / "model.pt2").module()
# program(torch.stack([prepare("photo.jpg")])) gives the logits
```
"""

_ONNX = """
## With onnxruntime

```python
import onnxruntime

session = onnxruntime.InferenceSession(folder / "model.onnx")
# session.run(None, {"images": torch.stack([prepare("photo.jpg")]).numpy()})[0] gives the logits
```
"""


def guide(about: About, kind: str) -> str:
    """Markdown for a folder exported as `torch` or `onnx`."""
    multi = about.task == "multi_label"
    num_classes = len(about.classes)
    arguments = f"num_classes={num_classes}"
    if has_fixed_size(about.model):
        arguments += f", img_size={about.image_size}"
    head = _HEAD.format(
        model=about.model,
        num_classes=num_classes,
        origin=_origin(about),
        program="model.pt2" if kind == "torch" else "model.onnx",
        kind="torch.export" if kind == "torch" else "ONNX",
        size=about.image_size,
        mean=list(about.mean),
        std=list(about.std),
        arguments=arguments,
        activation="a sigmoid" if multi else "a softmax",
        activate="sigmoid()" if multi else "softmax(dim=1)",
    )
    return head + (_TORCH if kind == "torch" else _ONNX)


def _origin(about: About) -> str:
    task = "several labels per image" if about.task == "multi_label" else "one class per image"
    by = f" by the run {about.run} with the preset {about.preset}" if about.run else ""
    return f"Trained with Ringside{by}; {task}."
