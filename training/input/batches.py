"""Batches on the device, prepared ahead of the training step on a stream of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

from ringside.errors import DataError, RingsideError
from ringside.spec import RunSpec
from training.input.augmentation import Mixer, jitter
from training.input.gpu import GpuDecoder
from training.input.loading import Decoded, Encoded, Pictures
from training.input.normalisation import Normalisation
from training.watchdog import INPUT_THREAD

AHEAD = 2

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Images float32 [n, 3, H, W] and targets float32 [n, C] on the device, indices."""


class Batches:
    """Iterates a loader; yields normalised images, targets and indices (see `Batch`)."""

    def __init__(
        self, loader: DataLoader[Any], device: torch.device, normalisation: Normalisation, *,
        color_jitter: float = 0.0, mixer: Mixer | None = None,
        layout: torch.memory_format = torch.channels_last,
    ) -> None:  # fmt: skip
        self.loader, self.device, self.layout = loader, device, layout
        self.color_jitter, self.mixer = color_jitter, mixer
        # One for all epochs: torch has 32 and deals them out in turn, so that more would be shared.
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        pictures = loader.dataset
        assert isinstance(pictures, Pictures)
        self.decoder = None if pictures.decode_here else GpuDecoder(pictures, device)
        mean = torch.tensor(normalisation.mean, device=device)
        scale = 1 / torch.tensor(normalisation.std, device=device)
        self.normal = torch.stack([scale, -mean * scale])
        # Levels go straight to normalised values, unless jitter needs them from 0 to 1 first.
        self.from_levels = torch.stack([scale / 255, -mean * scale])
        if color_jitter:
            self.from_levels = torch.stack([torch.full_like(mean, 1 / 255), torch.zeros_like(mean)])

    def __iter__(self) -> Iterator[Batch]:
        if self.stream is not None:
            return ahead(self._prepared(), self.device, self.stream)
        return self._prepared()

    def close(self) -> None:
        """Let the loader's workers end, with its iterators gone; nothing can be read any more.

        Left to the garbage collector, in a cycle, the queues to the workers are closed first; then
        no worker hears that it is to end, and each is waited for in vain for 5 s (torch 2.14).
        """
        del self.loader

    def _prepared(self) -> Iterator[Batch]:
        try:
            for batch in self.loader:
                if isinstance(batch, RingsideError):
                    raise DataError(str(batch))
                yield self._prepare(batch)
        finally:
            if self.decoder is not None:
                self.decoder.let_go()

    def _prepare(self, batch: Decoded | Encoded) -> Batch:
        if self.decoder is not None and isinstance(batch, Encoded):
            images = self.decoder(batch, self.from_levels)
        else:
            assert isinstance(batch, Decoded)
            pixels = batch.pixels.to(self.device, non_blocking=True)
            # [n, H, W, 3] seen as [n, 3, H, W] is channels_last without a copy.
            images = _affine(pixels.permute(0, 3, 1, 2).float(), self.from_levels)
        targets = batch.targets.to(self.device, non_blocking=True).float()
        if self.color_jitter:
            draws = batch.draws.to(self.device, non_blocking=True)
            images = jitter(images, draws[:, 4:], self.color_jitter)
            images = _affine(images, self.normal)
        if self.mixer is not None:
            images, targets = self.mixer(images, targets, batch.epoch, int(batch.indices[0]))
        return images.contiguous(memory_format=self.layout), targets, batch.indices


class SyntheticBatches:
    """The same made-up batch for ever, on the device: what a step costs when data is free."""

    def __init__(
        self, num_samples: int, num_classes: int, size: int, device: torch.device,
        layout: torch.memory_format = torch.channels_last,
    ) -> None:  # fmt: skip
        generator = torch.Generator().manual_seed(0)
        images = torch.randn(num_samples, 3, size, size, generator=generator)
        self.images = images.to(device, memory_format=layout)
        targets = torch.randint(0, 2, (num_samples, num_classes), generator=generator)
        self.targets, self.indices = targets.float().to(device), torch.arange(num_samples)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            yield self.images, self.targets, self.indices


def layout_of(spec: RunSpec) -> torch.memory_format:
    """Of a run's images, which its convolutions follow."""
    return torch.channels_last if spec.channels_last else torch.contiguous_format


def made_up(spec: RunSpec, num_classes: int, device: torch.device) -> SyntheticBatches:
    """For the source `synthetic`, and wherever data are to be free."""
    size = spec.data.image_size
    return SyntheticBatches(spec.loader_batch, num_classes, size, device, layout_of(spec))


def _affine(images: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    """images x by[0] + by[1] per channel, in place."""
    return images.mul_(by[0].view(1, 3, 1, 1)).add_(by[1].view(1, 3, 1, 1))


def ahead(
    batches: Iterator[Batch], device: torch.device, stream: torch.cuda.Stream
) -> Iterator[Batch]:
    """The same batches, prepared by a thread on `stream` while the step before computes."""
    stream.wait_stream(torch.cuda.current_stream(device))  # What it reads was made there.
    ready: queue.Queue[Any] = queue.Queue(maxsize=AHEAD)
    left = threading.Event()

    def prepare() -> None:
        try:
            with torch.cuda.device(device), torch.cuda.stream(stream):
                for batch in batches:
                    if not _put(ready, (batch, stream.record_event()), left):
                        return
            _put(ready, None, left)
        except BaseException as error:
            _put(ready, error, left)

    thread = threading.Thread(target=prepare, name=INPUT_THREAD, daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            batch, done = item
            current = torch.cuda.current_stream(device)
            current.wait_event(done)
            for tensor in batch[:2]:
                tensor.record_stream(current)
            yield batch
    finally:
        left.set()
        thread.join()


def _put(ready: queue.Queue[Any], item: Any, left: threading.Event) -> bool:
    """Wait for room unless the reader has left; False when it has."""
    while not left.is_set():
        try:
            ready.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False
