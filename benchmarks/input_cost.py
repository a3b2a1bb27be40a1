"""What each part of the input costs a training step, beside the loop of `floor.py` on one GPU.

    python benchmarks/make_jpegs.py PICTURES --count 4000
    python benchmarks/input_cost.py PICTURES --compile-mode reduce-overhead --queues 8

Each row trains the same steps in the same process, with more of the input beside them: nothing,
files that are read and dropped, batches in memory that are decoded and cropped, and everything.
`--queues` is CUDA_DEVICE_MAX_CONNECTIONS, which a run sets to 32. Prints a Markdown table: images/s
by the mean step, how long a step waits for its batch, and how long the input takes for one once it
is read. On a CPU, where nothing is prepared ahead, the rows with a GPU's decoder are left out.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from floor import DTYPES, made_up, make_step

from training.input.batches import Batch, Batches
from training.input.loading import Crop, Decoded, Encoded, Pictures, make_loader
from training.input.normalisation import normalisation_of

WARM_UP, IN_MEMORY = 20, 8
MORE = 64  # batches that are never asked for, so that readers are at work to the last step
MIN_AREA = 0.7


class Folder:
    """The JPEG files of a folder with made-up targets, as the loader reads them."""

    def __init__(self, folder: Path, num_classes: int) -> None:
        self.paths = sorted(folder.rglob("*.jpg"))
        drawn = np.random.default_rng(0).random((len(self.paths), num_classes))
        self.targets = (drawn < 0.1).astype(np.uint8)

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, index: int) -> bytes:
        """The content of a file."""
        return self.paths[index].read_bytes()

    def name(self, index: int) -> str:
        """What a fault is told with."""
        return str(self.paths[index])


class Timed(Batches):
    """Batches that note how long each took to prepare once it was read; `instead` drops them."""

    prepared_s = 0.0
    num_prepared = 0
    instead: Batch | None = None

    def _prepare(self, batch: Decoded | Encoded) -> Batch:
        if self.instead is not None:
            return self.instead
        begin = time.perf_counter()
        made = super()._prepare(batch)
        self.prepared_s += time.perf_counter() - begin
        self.num_prepared += 1
        return made


class Memory:
    """A loader whose batches were read before, again and again."""

    def __init__(self, dataset: Pictures, keys: Iterable[list[tuple[int, int]]]) -> None:
        self.dataset = dataset
        self.kept = [pinned(dataset.__getitems__(row)) for row in keys]

    def __iter__(self) -> Iterator[Any]:
        return itertools.cycle(self.kept)


def pinned(batch: Any) -> Any:
    """The batch in pinned memory, as a loader gives it."""
    return batch._make(part.pin_memory() if torch.is_tensor(part) else part for part in batch)


class Row(NamedTuple):
    """One measurement; times in ms, None where there is nothing to time."""

    what: str
    samples_per_s: float
    waits_ms: float
    input_ms: float | None


def parse_arguments() -> argparse.Namespace:
    """Flags of this benchmark, and those that `floor.make_step` needs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--precision", choices=DTYPES, default="bf16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--compile-mode", default=None, help="reduce-overhead or torch's default")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--workers", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--queues", type=int, default=32)
    parser.set_defaults(optimizer="sgd")
    return parser.parse_args()


def main() -> None:
    """Measure row after row, and print the table."""
    arguments = parse_arguments()
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(arguments.queues)
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    step = make_step(arguments, device, world=1)
    images, targets = made_up(arguments, device)
    made = images, targets, torch.arange(arguments.batch)
    setup = f"{arguments.model}, {arguments.batch} images a step, {arguments.precision}"
    print(f"{device.type}, {setup}, {arguments.queues} queues, torch {torch.__version__}")
    print("| beside the loop | images/s | a step waits | input |\n| --- | ---: | ---: | ---: |")
    for what, batches in sources(arguments, device, made):
        row = measure(arguments, device, step, what, batches)
        spent = "" if row.input_ms is None else f"{row.input_ms:.1f} ms a batch"
        print(f"| {row.what} | {row.samples_per_s:,.0f} | {row.waits_ms:.1f} ms | {spent} |",
              flush=True)  # fmt: skip


def sources(
    arguments: argparse.Namespace, device: torch.device, made: Batch
) -> Iterator[tuple[str, Iterable[Batch]]]:
    """What is beside the loop in each row; a source is made when its turn has come."""
    how = Crop(arguments.image_size, 0, True, MIN_AREA)
    files: Any = Folder(arguments.pictures, arguments.classes)
    normalisation = normalisation_of(arguments.model)
    on_gpu = device.type == "cuda"

    def keys(num: int) -> list[list[tuple[int, int]]]:
        rows = np.random.default_rng(1).integers(0, len(files), (num, arguments.batch))
        return [[(number, index) for index in row] for number, row in enumerate(rows.tolist())]

    def read(workers: int, *, decode_here: bool) -> Timed:
        pictures = Pictures(files, how, decode_here=decode_here)
        wanted = keys(WARM_UP + arguments.steps + MORE)
        loader = make_loader(pictures, wanted, num_workers=workers, pin=on_gpu)
        return Timed(loader, device, normalisation)

    yield "nothing", itertools.repeat(made)
    for workers in arguments.workers if on_gpu else ():
        dropped = read(workers, decode_here=False)
        dropped.instead = made
        yield f"reading, {workers} workers", dropped
    if on_gpu:
        memory: Any = Memory(Pictures(files, how, decode_here=False), keys(IN_MEMORY))
        yield "decoding and crops, from memory", Timed(memory, device, normalisation)
    for workers in arguments.workers:
        if on_gpu:
            yield f"everything, {workers} workers", read(workers, decode_here=False)
        yield f"everything, decoded by {workers} workers", read(workers, decode_here=True)


def measure(
    arguments: argparse.Namespace, device: torch.device, step: Any, what: str,
    batches: Iterable[Batch],
) -> Row:  # fmt: skip
    """Train `--steps` steps on `batches` after a warm-up, and close them."""
    stream, waited_s, begin = iter(batches), 0.0, 0.0
    for number in range(WARM_UP + arguments.steps):
        if number == WARM_UP:
            synchronize(device)
            waited_s, begin = 0.0, time.perf_counter()
            if isinstance(batches, Timed):
                batches.prepared_s, batches.num_prepared = 0.0, 0
        asked = time.perf_counter()
        images, targets, _ = next(stream)
        waited_s += time.perf_counter() - asked
        step(images, targets)
    synchronize(device)
    step_s = (time.perf_counter() - begin) / arguments.steps
    input_ms = None
    if isinstance(batches, Timed):
        if batches.num_prepared:
            input_ms = 1000 * batches.prepared_s / batches.num_prepared
        stream.close()  # type: ignore[attr-defined]
        batches.close()
    return Row(what, arguments.batch / step_s, 1000 * waited_s / arguments.steps, input_ms)


def synchronize(device: torch.device) -> None:
    """Wait for the GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


if __name__ == "__main__":
    main()
