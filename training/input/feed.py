"""The batches of one run: the same decoder and the same rules for training and evaluation."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ringside.cores import num_cores
from ringside.data import ImageData
from ringside.spec import RunSpec
from training.control import Control
from training.input.augmentation import Mixer
from training.input.batches import Batches, SyntheticBatches, layout_of, made_up
from training.input.choice import Choice, choose
from training.input.loading import Crop, Pictures, make_loader
from training.input.normalisation import normalisation_of
from training.order import Key
from training.pipeline.targets import TargetBatches

MAX_WORKERS = 16
READERS = 4  # workers that only read files: more take cores from the process that trains

AnyBatches = Batches | SyntheticBatches | TargetBatches


class Feed:
    """Chooses the decoder and the number of workers; all ranks choose alike."""

    def __init__(self, engine: Any, data: ImageData, control: Control) -> None:
        self.spec: RunSpec = engine.spec
        self.data, self.device = data, engine.device
        self.reads = engine.pipeline is None or engine.pipeline.first
        self.num_workers = self._num_workers()
        self.choice: Choice = control.share(self._choose() if engine.rank == 0 else None)
        if self.choice.decoder == "gpu" and self.spec.training.num_workers is None:
            self.num_workers = min(self.num_workers, READERS)

    def training(self, batches: Iterable[list[Key]]) -> AnyBatches:
        """Augmented batches of the training split; made up once for the source `synthetic`."""
        spec, settings = self.spec, self.spec.training
        if not self.reads:
            return TargetBatches(self.data.train.targets, batches, self.device)
        if spec.data.source == "synthetic":
            return made_up(spec, len(self.data.classes), self.device)
        mixes = settings.mixup > 0 or settings.cutmix > 0
        return Batches(
            self._loader(self._pictures(augment=True), batches),
            self.device,
            normalisation_of(spec.model),
            color_jitter=settings.color_jitter,
            mixer=Mixer(spec.seed, settings.mixup, settings.cutmix) if mixes else None,
            layout=layout_of(spec),
        )

    def evaluation(self, batches: Iterable[list[Key]]) -> AnyBatches:
        """The centres of the validation pictures, without randomness."""
        if not self.reads:
            return TargetBatches(self.data.val.targets, batches, self.device)
        loader = self._loader(self._pictures(augment=False), batches)
        normalisation = normalisation_of(self.spec.model)
        return Batches(loader, self.device, normalisation, layout=layout_of(self.spec))

    def _pictures(self, *, augment: bool) -> Pictures:
        how = Crop(
            self.spec.data.image_size, self.spec.seed, augment, self.spec.training.min_crop_area
        )
        split = self.data.train if augment else self.data.val
        return Pictures(split, how, decode_here=self.choice.decoder == "cpu")

    def _loader(self, pictures: Pictures, batches: Iterable[list[Key]]) -> Any:
        pin = self.device.type == "cuda"
        return make_loader(pictures, batches, num_workers=self.num_workers, pin=pin)

    def _choose(self) -> Choice:
        """As the preset says; for `auto` what is faster on this machine with these pictures."""
        if self.spec.training.decoder != "auto" or self.spec.data.source == "synthetic":
            return Choice("gpu" if self.spec.training.decoder == "gpu" else "cpu")
        how = Crop(self.spec.data.image_size)
        pictures = Pictures(self.data.train, how, decode_here=True)
        return choose(pictures, self.device, self.num_workers, self.ranks_here)

    def _num_workers(self) -> int:
        """The preset's, else none on a CPU (its cores train) and a share of the cores on a GPU."""
        if self.spec.training.num_workers is not None:
            return self.spec.training.num_workers
        if self.device.type == "cpu":
            return 0
        return max(1, min(MAX_WORKERS, num_cores() // self.ranks_here - 1))

    @property
    def ranks_here(self) -> int:
        """Ranks of this machine that read pictures."""
        return min(int(os.environ.get("LOCAL_WORLD_SIZE", "1")), self.spec.num_readers)
