"""Images per CPU-second of the training input, ours beside timm's, on the same files.

    python benchmarks/make_jpegs.py PICTURES --count 1000
    python benchmarks/loader.py PICTURES

Both read files, decode, crop to 224 px at random, mirror and make a uint8 batch, in this process
and on one thread. timm runs twice: as documented (colour jitter, random interpolation, its own
crops) and with its cheapest choices and our crops. Rounds alternate and the processor's time is
counted, not the clock's, so a busy machine disturbs little. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image
from timm.data.loader import fast_collate
from timm.data.transforms_factory import create_transform

from ringside.data import open_data, parse_data
from training.input.loading import Crop, Pictures

SIZE, BATCH = 224, 64
LIKE_OURS = {
    "color_jitter": None, "interpolation": "bilinear", "scale": (0.7, 1.0), "ratio": (1.0, 1.0),
}  # fmt: skip

Run = Callable[[list[int]], object]


def main() -> None:
    """Measure in rounds and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    split = open_data(parse_data(str(arguments.pictures), image_size=SIZE)).train
    files = [split.name(index) for index in range(len(split))]
    pictures = Pictures(split, Crop(SIZE, 0, True, 0.7), decode_here=True)
    contestants: dict[str, Run] = {
        "ours": lambda indices: pictures.__getitems__([(1, index) for index in indices]),
        "timm, as documented": timm_batch(files),
        "timm, cheapest, our crops": timm_batch(files, **LIKE_OURS),
    }
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(arguments.rounds):
        start = number * BATCH % max(1, len(files) - BATCH)
        for name, run in contestants.items():
            rates[name].append(rate(run, list(range(start, start + BATCH))))
    report(rates)


def timm_batch(files: list[str], **options: object) -> Run:
    """timm's training transform and collation, as its loader's workers run them."""
    transform = create_transform(SIZE, is_training=True, use_prefetcher=True, **options)

    def run(indices: list[int]) -> object:
        return fast_collate([(transform(open_rgb(files[index])), 0) for index in indices])

    return run


def open_rgb(file: str) -> Image.Image:
    """As timm's data sets read a picture."""
    with open(file, "rb") as stream:
        return Image.open(stream).convert("RGB")


def rate(run: Run, indices: list[int]) -> float:
    """Images per second of processor time; a first call pays for caches."""
    run(indices[:4])
    begin = time.process_time()
    run(indices)
    return len(indices) / (time.process_time() - begin)


def report(rates: dict[str, list[float]]) -> None:
    """Medians with their range; the ratio is the median of the rounds' ratios."""
    print("| loader | images per CPU-second | range | ours is faster by |")
    print("| --- | ---: | ---: | ---: |")
    for name, found in rates.items():
        ratios = [a / b for a, b in zip(rates["ours"], found, strict=True)]
        ratio = "" if name == "ours" else f"{statistics.median(ratios):.2f}x"
        low, high = min(found), max(found)
        print(f"| {name} | {statistics.median(found):,.0f} | {low:,.0f}–{high:,.0f} | {ratio} |")


if __name__ == "__main__":
    main()
