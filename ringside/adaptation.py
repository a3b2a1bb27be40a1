"""A preset that was made for another number of devices: what could be done, and what it costs.

The global batch is processes x images per device x micro-steps. With other devices either it
changes, and with it the learning rate (linear: Goyal et al. 2017, arXiv:1706.02677), or one of the
other two does. Which of them is the person's choice; nothing is changed silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from ringside import yaml_text
from ringside.errors import SpecError
from ringside.hardware import Hardware
from ringside.presets import Preset
from ringside.request import DEFAULT_MICRO_BATCH
from ringside.spec import TrainingSettings, peak_learning_rate
from ringside.words import say

Kind = Literal["accumulate", "resize", "rescale", "stages"]


class Adaptation(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a preset on other devices.

    `micro_batch` counts images in one forward pass of a device, `global_batch` those per optimizer
    step; `batch` is what `ringside run --batch` takes. `flags` are its arguments after the preset.
    """

    kind: Kind
    processes: int
    micro_batch: int
    accumulation_steps: int
    global_batch: int
    batch: int
    learning_rate: float
    sentence: str
    flags: tuple[str, ...]


class _Before(msgspec.Struct, frozen=True, kw_only=True):
    devices: int
    micro_batch: int
    steps: int

    @property
    def global_batch(self) -> int:
        return self.devices * self.micro_batch * self.steps


def adaptations(
    preset: Preset,
    hardware: Hardware,
    *,
    devices: int | None = None,
    made_for: int | None = None,
    micro_batch: int | None = None,
) -> tuple[Adaptation, ...]:
    """The ways, those that keep the global batch first; () where nothing has to be adapted.

    `devices` are as many as `hardware` has by default, `made_for` what the preset says. Images per
    device are the default of `ringside run` unless `micro_batch` says what it was tuned with.
    """
    here = _count("devices", devices) or hardware.num_devices()
    before = _count("made-for", made_for) or preset.file.accelerate.num_processes
    images = _count("images", micro_batch) or DEFAULT_MICRO_BATCH[hardware.device]
    one_process = preset.file.accelerate.strategy == "single"
    if before is None or before == here or one_process:
        return ()
    training = preset.file.training
    if training.parallelism == "pipeline":
        return (_stages(training, before, here, images),)
    was = _Before(devices=before, micro_batch=images, steps=training.accumulation_steps)
    return tuple(_ways(training, was, here))


def why_none(preset: Preset, made_for: int | None = None) -> str:
    """Why there is nothing to adapt, in a sentence."""
    count = made_for or preset.file.accelerate.num_processes
    if preset.file.accelerate.strategy == "single":
        return say("adaptation.one_device", name=preset.name)
    if count is None:
        return say("adaptation.any_number", name=preset.name)
    return say("adaptation.fits", name=preset.name, made_for=count)


def adapted_text(preset: Preset, adaptation: Adaptation) -> bytes:
    """The preset's file for the new devices, only what changes changed.

    The batch is no part of a preset, so it stands in the first line.
    """
    tree = yaml_text.load_text(yaml_text.read_bytes(Path(preset.path)), origin=preset.name).value
    tree["accelerate"]["num_processes"] = adaptation.processes
    if adaptation.accumulation_steps != preset.file.training.accumulation_steps:
        training = tree.get("training") or {}
        tree["training"] = {**training, "accumulation_steps": adaptation.accumulation_steps}
    head = f"# {preset.name} for {adaptation.processes} devices; run it with --batch "
    return f"{head}{adaptation.batch}.\n{yaml_text.dump(tree)}".encode()


def _ways(training: TrainingSettings, was: _Before, here: int) -> Iterator[Adaptation]:
    work = was.devices * was.steps
    # A CUDA graph's gradients cannot be added up (ringside.combinations).
    if work % here == 0 and training.compile_mode == "default":
        yield _way("accumulate", training, was, here, was.micro_batch, work // here)
    images = was.devices * was.micro_batch
    if images % here == 0:
        yield _way("resize", training, was, here, images // here, was.steps)
    yield _way("rescale", training, was, here, was.micro_batch, was.steps)


def _way(
    kind: Kind, training: TrainingSettings, was: _Before, here: int, micro: int, steps: int
) -> Adaptation:
    batch, whole = here * micro, here * micro * steps
    rate = peak_learning_rate(training, whole)
    words: dict[str, Any] = {
        "devices": here, "made_for": was.devices, "micro": micro, "old_micro": was.micro_batch,
        "steps": steps, "old_steps": was.steps, "batch": whole, "old_batch": was.global_batch,
        "ratio": micro / was.micro_batch, "rate": rate,
        "rule": say(f"rule.{training.learning_rate_rule}"),
        "old_rate": peak_learning_rate(training, was.global_batch),
    }  # fmt: skip
    flags = ["--processes", str(here), "--batch", str(batch)]
    if steps != training.accumulation_steps:
        flags += ["--set", f"accumulation_steps={steps}"]
    return Adaptation(
        kind=kind, processes=here, micro_batch=micro, accumulation_steps=steps, global_batch=whole,
        batch=batch, learning_rate=rate, sentence=say(f"adaptation.{kind}", **words),
        flags=tuple(flags),
    )  # fmt: skip


def _stages(training: TrainingSettings, before: int, here: int, images: int) -> Adaptation:
    """A pipeline's devices hold parts of one model, so their number leaves the batch alone."""
    batch = images * before
    whole = batch * training.accumulation_steps
    return Adaptation(
        kind="stages", processes=here, micro_batch=batch // training.pipeline_micro_batches,
        accumulation_steps=training.accumulation_steps, global_batch=whole, batch=batch,
        learning_rate=peak_learning_rate(training, whole),
        sentence=say("adaptation.stages", devices=here, made_for=before),
        flags=("--processes", str(here), "--batch", str(batch)),
    )  # fmt: skip


def _count(name: str, value: int | None) -> int | None:
    if value is not None and not 1 <= value <= 65_536:
        raise SpecError(say("adaptation.bad_count", name=name, value=value))
    return value
