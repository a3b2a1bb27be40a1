"""An address that fills the form: `/?preset=ddp_bf16&run=ID&set=bucket_cap_mb=50`.

`run` gives what a run of this folder asked for, `preset` and `set` what to do otherwise;
`?playbook=NAME` the run of a playbook as it fits this machine, and `way` with it or with a preset
the kind of the adaptation. Nothing is started, only names that Ringside knows get through, and what
the form cannot hold is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from app.views.fields import BESIDE
from app.views.replaying import adapted_preset, replayed
from ringside.durations import duration
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.overrides import locate, parse_overrides
from ringside.presets import Library, PresetFile
from ringside.rundir import list_run_dirs
from ringside.spec import AccelerateSettings, DataSpec, FsdpConfig, RunSpec, TrainingSettings
from ringside.words import say, say_count

MAX_SETTINGS = 20
MAX_LENGTH = 200
SEPARATORS = {"\n": "newline", ";": "semicolon", "|": "bar", ",": "comma", "none": "none"}
FIELD_OF = {"accelerate.mixed_precision": "precision", "training.learning_rate": "learning_rate"}
"""Settings that have a field of their own."""


@dataclass
class Prefilled:
    """Fields of the form by name, and a sentence for each thing that the form cannot show."""

    values: dict[str, Any] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)


def prefilled(
    query: Iterable[tuple[str, str]], root: Path, hardware: Hardware | None = None
) -> Prefilled:
    """What an address says of the form; empty for one that says nothing.

    RingsideError in a sentence for a run, a preset or a setting that there is not.
    """
    asked = [(key, value[:MAX_LENGTH]) for key, value in query]
    runs, presets, pairs, playbooks, ways = (
        [value for key, value in asked if key == name]
        for name in ("run", "preset", "set", "playbook", "way")
    )
    hardware = hardware or Hardware()
    found = Prefilled()
    settings: dict[str, str] = {}
    way = ways[-1] if ways else None
    if runs:
        spec = _spec_of(root, runs[-1])
        found.values = _values(spec, hardware)
        found.lost += _lost(spec, hardware)
        settings = _own_settings(spec, found.lost)
    if playbooks:
        found.values, settings, found.lost = replayed(playbooks[-1], way, hardware)
    elif presets and way:
        found.values, settings, found.lost = adapted_preset(presets[-1], way, hardware)
    elif presets:
        found.values["preset"] = Library().get(presets[-1]).name
    for key, value in parse_overrides(pairs[:MAX_SETTINGS]).items():
        settings[".".join(locate(key))] = value
    found.values |= _fields_of(settings)
    return found


def _fields_of(settings: dict[str, str]) -> dict[str, Any]:
    """Each setting in its own field, where it has one; all others a line of the last field."""
    found: dict[str, Any] = {
        FIELD_OF[key]: value for key, value in settings.items() if key in FIELD_OF
    }
    if "learning_rate" in found:
        try:
            found["learning_rate"] = float(found["learning_rate"])
        except ValueError:
            found["overrides"] = f"learning_rate={found.pop('learning_rate')}"  # the plan says why
    lines = [f"{key}={value}" for key, value in settings.items() if key not in FIELD_OF]
    if lines:
        found["overrides"] = "\n".join([*filter(None, [found.get("overrides")]), *lines])
    return found


def _spec_of(root: Path, run_id: str) -> RunSpec:
    """The request of the run with exactly this id."""
    run = next((run for run in list_run_dirs(root) if run.id == run_id), None)
    spec = run.read(run.spec, RunSpec) if run else None
    if spec is None:
        raise RingsideError(say("train.no_such_run", run=run_id))
    return spec


def _values(spec: RunSpec, hardware: Hardware) -> dict[str, Any]:
    batch = spec.global_batch
    if not spec.keeps_global_batch:
        batch //= spec.training.accumulation_steps
    found: dict[str, Any] = {
        **_data(spec.data),
        "preset": spec.preset,
        "model": spec.model,
        "epochs": spec.epochs,
        "batch": batch,
        "image_size": spec.data.image_size,
        "seed": spec.seed,
        "keep_global_batch": spec.keeps_global_batch,
        "retry": bool(spec.retries),
        **_devices(spec, hardware),
    }
    optional = {"weights": spec.weights, "profile": spec.profile_steps or None}
    optional["time_limit"] = _written(spec.time_limit_s) if spec.time_limit_s else None
    optional["when_busy"] = BESIDE if spec.beside else None
    return found | {name: value for name, value in optional.items() if value is not None}


def _devices(spec: RunSpec, hardware: Hardware) -> dict[str, Any]:
    """The same GPUs where they are here; on a machine without GPUs so many processes."""
    if not hardware.gpus:
        return {"processes": spec.num_devices}
    here = {gpu.index for gpu in hardware.gpus}
    if spec.gpu_ids and set(spec.gpu_ids) <= here:
        return {"gpus": list(spec.gpu_ids)}
    return {}


def _data(data: DataSpec) -> dict[str, Any]:
    """A person's own data go into their own field."""
    if data.path is None and data.repository is None:
        return {"source": data.label}
    name = data.label
    if data.repository is not None and data.revision:
        name = f"{data.label}@{data.revision}"
    return {
        "source": "folder", "folder": name, "separator": SEPARATORS.get(data.separator or "", ""),
    }  # fmt: skip


def _lost(spec: RunSpec, hardware: Hardware) -> Iterator[str]:
    """What the form has no field for, or this machine no device."""
    if spec.data.skip:
        yield say("clone.skip", files=say_count("file", len(spec.data.skip)))
    if spec.resume_from:
        yield say("clone.resumed", folder=spec.resume_from)
    if spec.device != hardware.device:
        yield say("clone.device", device=say(f"device.{spec.device}"))
    elif hardware.gpus and not set(spec.gpu_ids) <= {gpu.index for gpu in hardware.gpus}:
        yield say("clone.gpus", ids=", ".join(map(str, spec.gpu_ids)))


def _own_settings(spec: RunSpec, lost: list[str]) -> dict[str, str]:
    """Every setting that is another than in the preset as the library has it now.

    So a preset that was changed since gives the same run, too.
    """
    preset = Library().presets.get(spec.preset)
    if preset is None:
        lost.append(say("clone.no_preset", preset=spec.preset))
        return {}
    usual = preset.file
    gone = sorted(set(usual.environment) - set(spec.environment))
    if gone:
        lost.append(say("clone.environment", names=", ".join(gone)))
    return dict(_changed(spec, usual))


def _changed(spec: RunSpec, usual: PresetFile) -> Iterator[tuple[str, str]]:
    parts: tuple[tuple[str, type[msgspec.Struct]], ...] = (
        ("training", TrainingSettings), ("accelerate", AccelerateSettings),
    )  # fmt: skip
    for part, kind in parts:
        for name in kind.__struct_fields__:
            if name in ("num_processes", "fsdp_config"):
                continue
            value = getattr(getattr(spec, part), name)
            if value != getattr(getattr(usual, part), name):
                yield f"{part}.{name}", _text(value)
    config = spec.accelerate.fsdp_config
    if config is not None:
        before = usual.accelerate.fsdp_config or FsdpConfig()
        for name in FsdpConfig.__struct_fields__:
            if getattr(config, name) != getattr(before, name):
                yield f"accelerate.{name}", _text(getattr(config, name))
    for name, value in spec.environment.items():
        if usual.environment.get(name) != value:
            yield f"environment.{name}", value


def _written(seconds: int) -> str:
    """A length of time as people type it: `1h30m`."""
    return duration(seconds).replace("min", "m").replace(" ", "")


def _text(value: object) -> str:
    """A value as `--set` takes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)
