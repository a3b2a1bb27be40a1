"""What the button Apply fills in, and the command that runs it, with everything else as it was."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from ringside.command_line import setting_text
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy
from ringside.spec import RunSpec, TrainingSettings
from ringside.speedup import DISTRIBUTED_SETTINGS

if TYPE_CHECKING:
    from ringside.presets import PresetFile

# Without a request, as for somebody's traces, only the kind of remedy is known.
_OF_ANYBODY = {
    "PARALLEL-001": Remedy(preset="ddp"),
    "UNUSED-001": Remedy(preset="ddp"),
    "BATCHNORM-001": Remedy(preset="ddp"),
    "BUCKET-001": Remedy(preset="ddp"),
    "LAUNCH-001": Remedy(preset="ddp_bf16_compiled", overrides={"compile_mode": "reduce-overhead"}),
    "COMPUTE-001": Remedy(preset="ddp_bf16_compiled"),
    "LINK-003": Remedy(preset="ddp_bf16"),
}
_SETTING = {
    "UNUSED-001": {"find_unused_parameters": "false"},
    "BATCHNORM-001": {"sync_batchnorm": "false"},
}


def remedy_of(code: str, spec: RunSpec | None) -> Remedy:
    """What to try for a finding of the traces; one thing is changed. The precision stays
    unless it is what makes the difference."""
    if code == "LINK-001":
        return fewer_bytes(spec) or Remedy()
    if spec is None:
        return _OF_ANYBODY.get(code, Remedy())
    if code in _SETTING:
        return Remedy(preset=spec.preset, overrides=_SETTING[code])
    if code == "PARALLEL-001":
        return Remedy(preset=ddp_at(spec))
    if code == "LINK-003":
        return in_bf16(spec)
    if code in ("LAUNCH-001", "COMPUTE-001"):
        return compiled(spec, replays=code == "LAUNCH-001")
    return _OF_ANYBODY.get(code, Remedy())


def fewer_bytes(spec: RunSpec | None) -> Remedy | None:
    """A 16-bit hook at the same precision; where there is one, a batch that is exchanged less."""
    if spec is None:
        return Remedy(preset="ddp_bf16_compress")
    if spec.strategy != "ddp":
        return None
    if spec.training.comm_hook != "no":
        if spec.keeps_global_batch:
            return None  # micro-steps that share the batch exchange no less for each image
        fewer = str(4 * spec.training.accumulation_steps)
        return Remedy(preset=spec.preset, overrides={"accumulation_steps": fewer})
    precision = spec.accelerate.mixed_precision
    hook = "bf16" if precision == "no" else precision
    return Remedy(preset=spec.preset, overrides={"comm_hook": hook})


def ddp_at(spec: RunSpec) -> str:
    """The plain preset of DDP at the precision of a request."""
    precision = spec.accelerate.mixed_precision
    return "ddp" if precision == "no" else f"ddp_{precision}"


def in_bf16(spec: RunSpec) -> Remedy:
    """The same in bf16, by its preset where there is one; nothing for what is in bf16 already."""
    if spec.accelerate.mixed_precision == "bf16":
        return Remedy()
    if spec.accelerate.mixed_precision != "no":
        return Remedy(preset=spec.preset, overrides={"mixed_precision": "bf16"})
    named = f"{spec.preset}_bf16"
    if file_of(named) is not None:
        return Remedy(preset=named)
    return Remedy(preset=spec.preset, overrides={"mixed_precision": "bf16"})


def compiled(spec: RunSpec, *, replays: bool) -> Remedy:
    """The same preset with a compiled model; `replays`: with CUDA graphs, for small batches."""
    if spec.training.compile and (not replays or spec.training.compile_mode != "default"):
        return Remedy()
    mode = {"compile_mode": "reduce-overhead"} if replays and spec.device == "cuda" else {}
    return Remedy(preset=spec.preset, overrides={"compile": "true", **mode})


def allowed(finding: Finding, spec: RunSpec | None) -> Finding:
    """The finding without its remedy where the preset is unknown here or not for this device."""
    if finding.preset is None or spec is None or _fits(finding.preset, spec):
        return finding
    return msgspec.structs.replace(finding, preset=None, overrides={})


def _fits(preset: str, spec: RunSpec) -> bool:
    from ringside.errors import PresetError
    from ringside.presets import Library

    try:
        return spec.device in Library().get(preset).about.devices
    except PresetError:
        return False


def command_for(finding: Finding, spec: RunSpec | None) -> str | None:
    """`ringside run PRESET …` for a shell; None when there is nothing to apply.

    Where variables are the remedy it is the same request without them.
    """
    preset = finding.preset or (spec.preset if spec is not None and finding.unset else None)
    if preset is None:
        return None
    without = [word for name in finding.unset for word in ("-u", name)]
    before = ["env", *without] if without else []
    if spec is None:
        changes = [f"--set={key}={value}" for key, value in sorted(finding.overrides.items())]
        return shlex.join([*before, "ringside", "run", preset, *changes])
    leave = frozenset(f"environment.{name}" for name in finding.unset)
    words = request_words(spec, preset, finding.overrides, leave_out=leave)
    return shlex.join([*before, *words])


def request_command(spec: RunSpec) -> str:
    """The command line that asks for this request."""
    return shlex.join(request_words(spec, spec.preset, {}))


def request_words(
    spec: RunSpec, preset: str, changes: dict[str, str], *, leave_out: Collection[str] = ()
) -> list[str]:
    """`ringside run PRESET …` with all of the request but for `changes`.

    `--batch` counts images before accumulation multiplies them.
    """
    settings = by_hand(spec) if preset == spec.preset else asked_for(spec)
    settings = {key: value for key, value in settings.items() if key not in leave_out} | changes
    return [
        "ringside", "run", preset, *_kept(spec),
        *(f"--set={key}={value}" for key, value in sorted(settings.items())),
    ]  # fmt: skip


def by_hand(spec: RunSpec) -> dict[str, str]:
    """Each setting that is not as the preset has it, as `--set` takes it.

    Of a preset that is not here, those that were asked for with `--set`.
    """
    file = file_of(spec.preset)
    if file is None:
        return asked_for(spec)
    pairs: list[tuple[msgspec.Struct, msgspec.Struct]] = [(spec.training, file.training)]
    if spec.accelerate.fsdp_config is not None and file.accelerate.fsdp_config is not None:
        pairs.append((spec.accelerate.fsdp_config, file.accelerate.fsdp_config))
    found = {
        name: setting_text(getattr(own, name))
        for own, given in pairs
        for name in own.__struct_fields__
        if getattr(own, name) != getattr(given, name)
    }
    precision = spec.accelerate.mixed_precision
    if precision != file.accelerate.mixed_precision:
        found["mixed_precision"] = precision
    return found | {
        f"environment.{name}": value
        for name, value in spec.environment.items()
        if file.environment.get(name) != value
    }


def asked_for(spec: RunSpec) -> dict[str, str]:
    """The settings that were asked for with `--set` and mean something to every strategy."""
    parts = {"training": spec.training, "accelerate": spec.accelerate}
    keys = [key.partition(".") for key, source in spec.sources.items() if source == "flag"]
    return {
        name: setting_text(getattr(parts[part], name))
        for part, _, name in keys
        if part in parts and name in _OF_EVERY_STRATEGY
    }


def file_of(preset: str) -> PresetFile | None:
    """What a preset says; None where it is unknown here."""
    from ringside.errors import PresetError
    from ringside.presets import Library

    try:
        return Library().get(preset).file
    except PresetError:
        return None


_OF_EVERY_STRATEGY = {"mixed_precision", "accumulation_steps"} | {
    name for name in TrainingSettings.__struct_fields__ if name not in DISTRIBUTED_SETTINGS
}


def estimate_command(spec: RunSpec) -> str:
    """The estimate of this request, which first measures what one device does in its step."""
    settings = [f"--set={key}={value}" for key, value in sorted(by_hand(spec).items())]
    words = ["ringside", "estimate", spec.preset, *_of_the_step(spec), *settings, "--measure"]
    return shlex.join(words)


def _of_the_step(spec: RunSpec) -> list[str]:
    """Whatever shapes a step beside its settings."""
    batch = spec.global_batch
    if not spec.keeps_global_batch:
        batch //= spec.training.accumulation_steps
    words = [
        f"--data={spec.data.label}", f"--model={spec.model}", f"--batch={batch}",
        f"--image-size={spec.data.image_size}",
    ]  # fmt: skip
    if spec.keeps_global_batch:
        words.append("--keep-global-batch")
    if spec.strategy != "single":
        words.append(f"--processes={spec.num_devices}")
    return words


def _kept(spec: RunSpec) -> list[str]:
    """What stays of the request beside its settings."""
    words = [*_of_the_step(spec), f"--epochs={spec.epochs}", f"--seed={spec.seed}"]
    if spec.data.separator is not None:
        words.append(f"--separator={_SEPARATORS.get(spec.data.separator, spec.data.separator)}")
    if spec.data.skip:
        words.append("--skip-bad")
    if spec.weights is not None:
        words.append(f"--weights={spec.weights}")
    if spec.profile_steps:
        words.append(f"--profile={spec.profile_steps}")
    return words


_SEPARATORS = {"\n": "newline"}
