"""`ringside run ...` for a run that there was, with something changed."""

from __future__ import annotations

import shlex
from typing import Any

from ringside.errors import SpecError
from ringside.spec import RunSpec, batch_parts, refuse_uneven


def command(
    spec: RunSpec, *, preset: str | None = None, batch: int | None = None,
    settings: dict[str, Any] | None = None, keep_global_batch: bool | None = None,
) -> str:  # fmt: skip
    """`ringside run ...` for the same run, but for what is given; quoted for a shell."""
    keeps = spec.keeps_global_batch if keep_global_batch is None else keep_global_batch
    words = ["ringside", "run", preset or spec.preset, "--data", spec.data.label]
    words += ["--model", spec.model, "--epochs", str(spec.epochs)]
    words += ["--batch", str(batch or asked_batch(spec))]
    words += ["--image-size", str(spec.data.image_size)]
    if spec.num_devices > 1:
        words += ["--processes", str(spec.num_devices)]
    for key, value in (_own_settings(spec) | (settings or {})).items():
        words += ["--set", f"{key}={value}"]
    return shlex.join([*words, "--keep-global-batch"] if keeps else words)


def _own_settings(spec: RunSpec) -> dict[str, Any]:
    """The settings that a person changed with --set, by their bare names."""
    found = {}
    for key, source in spec.sources.items():
        part, _, name = key.partition(".")
        if source == "flag" and part == "training" and hasattr(spec.training, name):
            value = getattr(spec.training, name)
            found[name] = str(value).lower() if isinstance(value, bool) else value
    return found


def asked_batch(spec: RunSpec) -> int:
    """What `--batch` said: accumulation multiplies it unless it was told not to."""
    steps = 1 if spec.keeps_global_batch else spec.training.accumulation_steps
    return spec.global_batch // steps


def can_split(spec: RunSpec, batch: int, micro_steps: int) -> bool:
    """Whether the batch gives every device two images or more, which BatchNorm needs."""
    parts, part = batch_parts(spec.training, spec.num_devices)
    try:
        refuse_uneven(batch, parts, micro_steps, part)
    except SpecError:
        return False
    return batch >= 2 * parts * micro_steps
