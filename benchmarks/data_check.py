"""What checking a data set costs, against a bare parallel Pillow decode of the same files.

    python benchmarks/data_check.py [NUM_IMAGES] [WORKERS]

Makes product pictures of about 500 px in a temporary folder (not counted), reads them once so that
both sides find them in memory, then checks and decodes them in turn, five times. The bar is 10,000
images in under 40 s on 2 cores, with memory that does not grow with their number.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import psutil
from PIL import Image

from ringside.data import check_data, make_data

NUM_IMAGES, REPEATS, SAMPLE_S = 10_000, 5, 0.05
MAX_S_PER_IMAGE = 40 / 10_000
PROFILE = "bench"


def main() -> int:
    """Print seconds, images per second, memory and the ratio; 1 when the check is too slow."""
    num_images = int(sys.argv[1]) if len(sys.argv) > 1 else NUM_IMAGES
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as temporary:
        folder = make_data(PROFILE, Path(temporary) / "set", num_images=num_images)
        paths = sorted(str(path) for path in folder.rglob("*.jpg"))
        size_bytes = sum(len(Path(path).read_bytes()) for path in paths)
        with PeakMemory() as memory:  # a run of its own: sampling would disturb the clock
            check_data(str(folder), workers=workers)
        pairs = [pair_s(folder, paths, workers) for _ in range(REPEATS)]
    checks, floors = ([pair[i] for pair in pairs] for i in (0, 1))
    check_s = statistics.median(checks)
    print(
        f"{len(paths):,} JPEGs, {size_bytes / len(paths) / 1024:.0f} KiB each, {workers} processes"
    )
    print(f"check        {spread(checks)} s, {len(paths) / check_s:.0f} images/s")
    print(f"bare decode  {spread(floors)} s")
    print(f"ratio        {spread([check / floor for check, floor in pairs])}")
    print(f"peak memory  {memory.peak_bytes / 2**20:.0f} MiB, all processes together")
    return 0 if check_s < MAX_S_PER_IMAGE * len(paths) else 1


def spread(values: list[float]) -> str:
    """The middle with the smallest and the largest value."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def pair_s(folder: Path, paths: list[str], workers: int) -> tuple[float, float]:
    """Seconds of the check and of the bare decode."""
    check_s = seconds(lambda: check_data(str(folder), workers=workers))
    return check_s, seconds(lambda: bare_decode(paths, workers))


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def bare_decode(paths: list[str], workers: int) -> None:
    """The floor: open and load every file in as many processes, and keep nothing."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        for _ in pool.map(load, paths, chunksize=64):
            pass


def load(path: str) -> None:
    """Decode one file."""
    with Image.open(path) as image:
        image.load()


class PeakMemory:
    """Samples the proportional set size of this process and its children while it is entered."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        own = psutil.Process()
        while not self._ended.wait(SAMPLE_S):
            total = 0
            for process in (own, *own.children(recursive=True)):
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
            self.peak_bytes = max(self.peak_bytes, total)


if __name__ == "__main__":
    sys.exit(main())
