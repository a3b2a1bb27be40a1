"""Make a folder of JPEG photographs with several labels each, to measure loading and training.

    python benchmarks/make_jpegs.py FOLDER --count 10000 --seed 0 --sizes 300-800 --processes 16

A picture is noise of several scales (a cloudy ground with grain) with coloured shapes on it; the
shapes are its labels, so that a model can learn them. At quality 85 a file has about 60 kB. The
same arguments give the same files for any number of processes. Needs numpy and Pillow alone.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SHAPES = ("disc", "square", "triangle", "cross", "ring")
COLOURS = {
    "red": (205, 45, 40),
    "green": (40, 150, 65),
    "blue": (45, 80, 200),
    "yellow": (230, 200, 50),
}
LABELS = tuple(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)
MAX_LABELS = 4  # of one picture
GRAIN = 6.0  # standard deviation in grey levels; it decides how large the files become
QUALITY = 85
FILES_PER_FOLDER = 1000


@dataclass(frozen=True)
class Wanted:
    """What to make; `smallest` and `largest` bound both sides of a picture, in pixels."""

    folder: Path
    seed: int
    smallest: int
    largest: int


def file_name(number: int) -> str:
    """The path of picture `number` below the folder."""
    return f"{number // FILES_PER_FOLDER:03d}/{number:06d}.jpg"


def make_picture(wanted: Wanted, number: int) -> tuple[str, ...]:
    """Write picture `number` and return its labels."""
    random = np.random.default_rng((wanted.seed, number))
    width, height = (_side(random, wanted) for _ in range(2))
    image = Image.fromarray(_ground(random, width, height))
    chosen = random.choice(len(LABELS), size=random.integers(1, MAX_LABELS + 1), replace=False)
    labels = tuple(LABELS[i] for i in sorted(chosen))
    for label in labels:
        _draw(ImageDraw.Draw(image), label, random)
    grain = random.standard_normal((height, width, 1), dtype=np.float32) * np.float32(GRAIN)
    pixels = np.clip(np.asarray(image) + grain, 0, 255).astype(np.uint8)
    Image.fromarray(pixels).save(wanted.folder / file_name(number), quality=QUALITY)
    return labels


def _side(random: np.random.Generator, wanted: Wanted) -> int:
    low, high = wanted.smallest, wanted.largest
    if low == high:
        return low
    mode = low + 0.2 * (high - low)  # the mean of 300 to 800 is then 500
    return round(random.triangular(low, mode, high))


def _ground(random: np.random.Generator, width: int, height: int) -> np.ndarray:
    """Noise of four scales, each finer one half as strong: uint8, `[height, width, 3]`."""
    total = np.full((height, width, 3), random.uniform(90, 160, 3), dtype=np.float32)
    for cells, strength in ((3, 60), (8, 30), (24, 15), (80, 8)):
        coarse = random.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        fine = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        total += (np.asarray(fine, dtype=np.float32) - 127.5) * np.float32(strength / 127.5)
    return np.clip(total, 0, 255).astype(np.uint8)


def _draw(draw: ImageDraw.ImageDraw, label: str, random: np.random.Generator) -> None:
    """Draw one label at a random place, between a tenth and a quarter of the short side large."""
    colour_name, shape = label.split()
    colour = tuple(int(c) for c in np.clip(random.normal(COLOURS[colour_name], 12), 0, 255))
    width, height = draw.im.size
    r = min(width, height) * random.uniform(0.1, 0.25)
    x, y = random.uniform(r, width - r), random.uniform(r, height - r)
    box = (x - r, y - r, x + r, y + r)
    if shape == "disc":
        draw.ellipse(box, fill=colour)
    elif shape == "square":
        draw.rectangle(box, fill=colour)
    elif shape == "triangle":
        draw.regular_polygon((x, y, r), 3, rotation=int(random.integers(120)), fill=colour)
    elif shape == "cross":
        draw.rectangle((x - r, y - r / 4, x + r, y + r / 4), fill=colour)
        draw.rectangle((x - r / 4, y - r, x + r / 4, y + r), fill=colour)
    else:
        draw.ellipse(box, outline=colour, width=max(2, round(r / 4)))


def make_folder(wanted: Wanted, count: int, processes: int) -> None:
    """Write `count` pictures and then `metadata.csv`, whose labels a semicolon divides."""
    for first in range(0, count, FILES_PER_FOLDER):
        (wanted.folder / file_name(first)).parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(processes) as pool:
        rows = list(pool.map(partial(make_picture, wanted), range(count), chunksize=16))
    with (wanted.folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("file_name", "labels"))
        writer.writerows((file_name(i), ";".join(labels)) for i, labels in enumerate(rows))


def _size_range(text: str) -> tuple[int, int]:
    smallest, _, largest = text.partition("-")
    low, high = int(smallest), int(largest or smallest)
    if not 16 <= low <= high:
        raise argparse.ArgumentTypeError(f"{text}: write SMALLEST-LARGEST, from 16 pixels on")
    return low, high


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def main() -> None:
    """Parse the arguments, make the folder, say how large it became and how long it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="an empty or new folder")
    parser.add_argument("--count", type=int, default=10_000, help="pictures (default 10000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=_size_range, default=(300, 800), help="default 300-800")
    parser.add_argument("--processes", type=int, default=_cores(), help="default: all cores")
    given = parser.parse_args()
    if given.count < 1 or given.processes < 1:
        parser.error("--count and --processes are at least 1")
    if given.folder.exists() and any(given.folder.iterdir()):
        parser.error(f"{given.folder} is not empty: name a new folder")
    started_s = time.perf_counter()
    make_folder(Wanted(given.folder, given.seed, *given.sizes), given.count, given.processes)
    taken_s = time.perf_counter() - started_s
    total_bytes = sum(path.stat().st_size for path in given.folder.rglob("*.jpg"))
    print(
        f"{given.count:,} pictures, {total_bytes / 1e6:,.0f} MB, "
        f"{total_bytes / given.count / 1e3:.1f} kB each, in {taken_s:.1f} s"
    )


if __name__ == "__main__":
    main()
