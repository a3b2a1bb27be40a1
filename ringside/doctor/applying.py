"""What the button Apply fills in, and the command that runs it, with everything else as it was."""

from __future__ import annotations

import shlex

import msgspec

from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import Remedy
from ringside.spec import RunSpec

# Without a request, as for somebody's traces, only the kind of remedy is known.
_OF_ANYBODY = {
    "PARALLEL-001": Remedy(preset="ddp"),
    "UNUSED-001": Remedy(preset="ddp"),
    "BATCHNORM-001": Remedy(preset="ddp"),
    "BUCKET-001": Remedy(preset="ddp"),
    "LAUNCH-001": Remedy(preset="ddp_bf16_compiled", overrides={"compile_mode": "reduce-overhead"}),
    "COMPUTE-001": Remedy(preset="ddp_bf16_compiled"),
}
_SETTING = {
    "UNUSED-001": {"find_unused_parameters": "false"},
    "BATCHNORM-001": {"sync_batchnorm": "false"},
}


def remedy_of(code: str, spec: RunSpec | None) -> Remedy:
    """What to try for a finding of the traces; one thing is changed, the precision stays."""
    if code == "LINK-001":
        return fewer_bytes(spec) or Remedy()
    if spec is None:
        return _OF_ANYBODY.get(code, Remedy())
    if code in _SETTING:
        return Remedy(preset=spec.preset, overrides=_SETTING[code])
    if code == "PARALLEL-001":
        return Remedy(preset=ddp_at(spec))
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
        fewer = str(4 * spec.training.accumulation_steps)
        return Remedy(preset=spec.preset, overrides={"accumulation_steps": fewer})
    precision = spec.accelerate.mixed_precision
    hook = "bf16" if precision == "no" else precision
    return Remedy(preset=spec.preset, overrides={"comm_hook": hook})


def ddp_at(spec: RunSpec) -> str:
    """The plain preset of DDP at the precision of a request."""
    precision = spec.accelerate.mixed_precision
    return "ddp" if precision == "no" else f"ddp_{precision}"


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
    settings = (by_hand(spec) if spec is not None else {}) | finding.overrides
    changes = [f"--set={name}={value}" for name, value in sorted(settings.items())]
    kept = _kept(spec) if spec is not None else []
    without = [word for name in finding.unset for word in ("-u", name)]
    return shlex.join(
        [*(["env", *without] if without else []), "ringside", "run", preset, *kept, *changes]
    )


def by_hand(spec: RunSpec) -> dict[str, str]:
    """The settings that were changed with --set when the run was asked for."""
    parts = {"training": spec.training, "accelerate": spec.accelerate}
    found = {}
    for key, source in spec.sources.items():
        part, _, name = key.partition(".")
        if source != "flag" or part not in parts or not hasattr(parts[part], name):
            continue
        value = getattr(parts[part], name)
        if isinstance(value, (bool, int, float, str)):
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _kept(spec: RunSpec) -> list[str]:
    """What stays of the request; `--batch` counts images before accumulation multiplies them."""
    batch = spec.global_batch
    if not spec.keeps_global_batch:
        batch //= spec.training.accumulation_steps
    words = [
        f"--data={spec.data.label}", f"--model={spec.model}", f"--epochs={spec.epochs}",
        f"--batch={batch}", f"--image-size={spec.data.image_size}", f"--seed={spec.seed}",
    ]  # fmt: skip
    if spec.strategy in ("ddp", "fsdp", "local_sgd"):
        words.append(f"--processes={spec.num_processes}")
    if spec.weights is not None:
        words.append(f"--weights={spec.weights}")
    return words
