"""Where JPEG is decoded: measured on the training pictures themselves, before the first step."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice, pairwise
from typing import NamedTuple

import torch

from ringside.cores import num_cores
from ringside.errors import RingsideError
from training.input.decoding import decode, jpeg_decoder, ordinary_jpeg_size
from training.input.gpu import GpuDecoder, has_triton
from training.input.loading import Encoded, Pictures

SAMPLE = 128
CPU_SAMPLE = 8  # pictures for each worker
MIN_JPEG_SHARE = 0.5


class Choice(NamedTuple):
    """`decoder` is cpu or gpu; rates in images/s of all workers and of a GPU, None: not tried."""

    decoder: str
    cpu_rate: float | None = None
    gpu_rate: float | None = None


def choose(
    pictures: Pictures, device: torch.device, num_workers: int, ranks_here: int = 1
) -> Choice:
    """The faster of the two for a sample of the training pictures.

    The GPU is only tried where most pictures are JPEG; a GPU without a JPEG engine loses here by
    itself. `num_workers` are those of one rank, of which this machine has `ranks_here`.
    """
    if device.type != "cuda" or jpeg_decoder() is None or not has_triton():
        return Choice("cpu")
    sample = range(0, len(pictures), max(1, len(pictures) // SAMPLE))[:SAMPLE]
    if getattr(pictures.split, "pixels", None) is not None:
        return Choice("gpu")  # There is nothing to decode, and the GPU crops for next to nothing.
    encoded = [pictures.split.read(index) for index in sample]
    num_jpeg = sum(ordinary_jpeg_size(data) is not None for data in encoded)
    if num_jpeg < MIN_JPEG_SHARE * len(encoded):
        return Choice("cpu")
    names = [pictures.split.name(index) for index in sample]
    num_threads = min(max(1, num_workers) * ranks_here, num_cores())
    cpu_rate = _cpu_rate(encoded, names, num_threads) / ranks_here
    gpu_rate = _gpu_rate(pictures, list(sample), device)
    return Choice("gpu" if gpu_rate > cpu_rate else "cpu", cpu_rate, gpu_rate)


def _cpu_rate(encoded: list[bytes], names: list[str], num_threads: int) -> float:
    """Images/s of all workers at once, as threads: libjpeg works without Python's lock.

    One alone times their number is far too much: cores clock lower together, and two of a virtual
    machine's may be one of the processor's. The lock is held for about 20 microseconds a picture,
    which workers are spared: some ten thousand images/s are the most that is found.
    """
    sample = list(islice(cycle(zip(encoded, names, strict=True)), CPU_SAMPLE * num_threads))
    with ThreadPoolExecutor(num_threads) as pool:
        _all(pool.map(_decoded, *zip(*sample[:num_threads], strict=True)))  # Threads start.
        begin = time.perf_counter()
        _all(pool.map(_decoded, *zip(*sample, strict=True)))
        return len(sample) / (time.perf_counter() - begin)


def _decoded(data: bytes, name: str) -> None:
    """Nothing is kept: a sample of large pictures would not fit into memory."""
    decode(data, name)


def _all(results: Iterable[None]) -> None:
    """Wait for all; the first that failed raises."""
    for _ in results:
        pass


def _gpu_rate(pictures: Pictures, sample: list[int], device: torch.device) -> float:
    """Steady rate of a batch: the first call pays for the decoder's set-up and the kernel."""
    left = Pictures(pictures.split, pictures.how, decode_here=False)
    batch = left.__getitems__([(0, index) for index in sample])
    if isinstance(batch, RingsideError):
        raise batch
    assert isinstance(batch, Encoded)
    decoder = GpuDecoder(left, device)
    affine = torch.ones((2, 3), device=device)
    marks = []
    for _ in range(3):
        marks.append(time.perf_counter())
        decoder(batch, affine)
        torch.cuda.synchronize(device)
    marks.append(time.perf_counter())
    return len(sample) / min(end - begin for begin, end in pairwise(marks[1:]))
