"""`ringside run ...` for a run that there was, with something changed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from ringside.errors import PresetError, SpecError
from ringside.presets import Library
from ringside.spec import FsdpConfig, RunSpec, batch_parts, refuse_uneven


def command(
    spec: RunSpec, *, preset: str | None = None, batch: int | None = None,
    settings: dict[str, Any] | None = None, keep_global_batch: bool | None = None,
) -> str:  # fmt: skip
    """`ringside run ...` for the same run, but for what is given; quoted for a shell.

    All that was asked for is in it, so that nothing else changes.
    """
    keeps = spec.keeps_global_batch if keep_global_batch is None else keep_global_batch
    revision = f"@{spec.data.revision}" if spec.data.revision else ""
    words = ["ringside", "run", preset or spec.preset, "--data", f"{spec.data.label}{revision}"]
    words += ["--model", spec.model, "--epochs", str(spec.epochs)]
    words += ["--batch", str(batch or asked_batch(spec))]
    words += ["--image-size", str(spec.data.image_size)]
    if spec.num_devices > 1:
        words += ["--processes", str(spec.num_devices)]
    for key, value in (_own_settings(spec) | (settings or {})).items():
        words += ["--set", f"{key}={value}"]
    words += _options(spec)
    return shlex.join([*words, "--keep-global-batch"] if keeps else words)


def _options(spec: RunSpec) -> Iterator[str]:
    """What a person chose besides data, model, batch and settings."""
    if spec.sources.get("seed") == "flag":
        yield from ("--seed", str(spec.seed))
    if spec.data.separator:
        yield from ("--separator", spec.data.separator)
    if spec.weights:
        yield from ("--weights", spec.weights)
    if spec.profile_steps:
        yield from ("--profile", str(spec.profile_steps))
    if spec.sources.get("gpu_ids") == "flag":
        yield from ("--gpus", ",".join(map(str, spec.gpu_ids)))
    if spec.time_limit_s:
        yield from ("--time-limit", f"{spec.time_limit_s}s")
    switches = {
        "--retry": spec.retries, "--queue": spec.queue, "--beside": spec.beside,
        "--skip-bad": spec.data.skip,
    }  # fmt: skip
    yield from (switch for switch, is_on in switches.items() if is_on)


def _own_settings(spec: RunSpec) -> dict[str, str]:
    """The settings that a person changed with --set, by their bare names."""
    parts = {"training": spec.training, "accelerate": spec.accelerate}
    found: dict[str, str] = {}
    for key, source in spec.sources.items():
        part, _, name = key.partition(".")
        if source != "flag":
            continue
        if key == "accelerate.fsdp_config":
            found |= _of_fsdp(spec)
        elif part in parts and name != "num_processes" and hasattr(parts[part], name):
            found[name] = setting_text(getattr(parts[part], name))
    return found | _own_variables(spec)


def _own_variables(spec: RunSpec) -> dict[str, str]:
    """Those of the environment that the preset does not set so; all where it is not here."""
    try:
        usual = Library().get(spec.preset).file.environment
    except PresetError:
        usual = {}
    own = {name: value for name, value in spec.environment.items() if usual.get(name) != value}
    return {f"environment.{name}": value for name, value in own.items()}


def _of_fsdp(spec: RunSpec) -> dict[str, str]:
    """Its settings that are not at their defaults; those of the preset change nothing."""
    config, usual = spec.accelerate.fsdp_config or FsdpConfig(), FsdpConfig()
    names = FsdpConfig.__struct_fields__
    return {
        name: setting_text(getattr(config, name))
        for name in names
        if getattr(config, name) != getattr(usual, name)
    }


def setting_text(value: object) -> str:
    """A value as `--set` takes it: as YAML writes it, a list as words with commas."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


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
