"""Labels pictures with a checkpoint: `python -m training.label FOLDER IMAGE...`.

Pictures are read, decoded, cropped and normalised by the code that evaluates during training.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import msgspec

from ringside.checkpoints import About, read_about, read_thresholds
from ringside.data.images import FileImages, PackedBytes
from ringside.errors import DataError, RingsideError
from ringside.garbage import no_collection
from ringside.labelling import Label, labels_of, make_rule

with no_collection():
    import numpy as np
    import torch

    from training.checkpoint import load_model
    from training.input.loading import Crop, Decoded, Pictures
    from training.model import probabilities

BATCH = 32
MAX_THREADS = 8


class Labelled(msgspec.Struct, frozen=True):
    """One picture and its labels, the most probable first."""

    file: str
    labels: list[Label]


class Bad(msgspec.Struct, frozen=True):
    """One picture that has no labels, and why."""

    file: str
    reason: str


Prediction = tuple[str, "np.ndarray | RingsideError"]


class Predictor:
    """A model on the fastest device of this machine; probabilities in float32."""

    def __init__(self, folder: Path, about: About) -> None:
        self.about = about
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = load_model(folder, about).to(self.device)
        self.mean = torch.tensor(about.mean, device=self.device).view(1, 3, 1, 1)
        self.scale = torch.tensor(about.std, device=self.device).reciprocal_().view(1, 3, 1, 1)

    def predict(self, files: Sequence[str]) -> Iterator[Prediction]:
        """For each file, in order: probabilities float32 [classes], or what is wrong with it."""
        pictures = _pictures(files, self.about.image_size)
        numbers = iter(range(len(files)))
        with ThreadPoolExecutor(min(MAX_THREADS, os.cpu_count() or 1)) as threads:
            while batch := list(islice(numbers, BATCH)):
                read = list(threads.map(lambda i: _read(pictures, files[i], i), batch))
                good = [item.pixels for item in read if isinstance(item, Decoded)]
                rows = iter(self._forward(torch.cat(good)) if good else ())
                for number, item in zip(batch, read, strict=True):
                    yield files[number], next(rows) if isinstance(item, Decoded) else item

    @torch.inference_mode()
    def _forward(self, pixels: torch.Tensor) -> np.ndarray:
        """float32 [n, classes] of uint8 [n, size, size, 3]; the arithmetic of training.input."""
        images = pixels.to(self.device).permute(0, 3, 1, 2).float().div_(255)
        logits = self.model(images.sub_(self.mean).mul_(self.scale))
        found: np.ndarray = probabilities(logits, self.about.task).cpu().numpy()
        return found


def main(argv: list[str] | None = None) -> int:
    """Print labels; 0 when every picture has some answer, 1 when one is bad, 2 for a mistake."""
    arguments = _parse(argv)
    try:
        return _label(arguments)
    except RingsideError as error:
        print(error, file=sys.stderr)
        return 2


def _label(arguments: argparse.Namespace) -> int:
    folder = arguments.folder
    about, tuned = read_about(folder), read_thresholds(folder)
    rule = make_rule(arguments.top, arguments.threshold, about, tuned)
    good: list[Labelled] = []
    bad: list[Bad] = []
    for file, found in Predictor(folder, about).predict(arguments.images):
        name = _printable(file)
        if isinstance(found, RingsideError):
            bad.append(Bad(name, _printable(str(found))))
            print(bad[-1].reason, file=sys.stderr, flush=True)
            continue
        good.append(Labelled(name, labels_of(found.tolist(), about, tuned, rule)))
        if not arguments.json:
            print(_line(good[-1]), flush=True)
    if arguments.json:
        result = {
            "model": folder, "run": about.run, "task": about.task, "top": rule.top,
            "threshold": rule.threshold, "images": good, "bad": bad,
        }  # fmt: skip
        print(msgspec.json.format(msgspec.json.encode(result, enc_hook=str), indent=2).decode())
    return 1 if bad else 0


def _pictures(files: Sequence[str], size: int) -> Pictures:
    paths = PackedBytes.pack(os.fsencode(os.path.abspath(file)).lstrip(b"/") for file in files)
    split = FileImages("", paths, np.zeros((len(files), 1), np.uint8))
    return Pictures(split, Crop(size), decode_here=True)


def _read(pictures: Pictures, file: str, number: int) -> Decoded | RingsideError:
    if os.path.isdir(file):
        return DataError(f"{file} is a folder: name the pictures in it, such as {file}/*.jpg.")
    if not os.path.exists(file):
        return DataError(f"{file} does not exist.")
    found: Decoded | RingsideError = pictures[(0, number)]
    return found


def _line(found: Labelled) -> str:
    labels = ", ".join(f"{label.name} {label.probability:.3f}" for label in found.labels)
    return f"{found.file}: {labels or 'no label'}"


def _printable(text: str) -> str:
    """A file name may hold bytes that are no text."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m training.label")
    parser.add_argument("folder", type=Path, help="a checkpoint or exported folder")
    parser.add_argument("images", nargs="+", help="picture files")
    parser.add_argument("--top", type=int)
    parser.add_argument("--threshold", help="a number from 0 to 1, or `tuned`")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
