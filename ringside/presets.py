"""Presets: named strategies as files, the libraries they come from, and Accelerate's view of them.

A preset file has four parts (`about`, `accelerate`, `training`, `environment`). Accelerate's own
file refuses keys it does not know and cannot hold accumulation or a comm hook, so it is rendered
from the preset and never edited.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ringside import yaml_text
from ringside.errors import PresetError, nearest
from ringside.file_cache import FileCache, signature_of
from ringside.libraries import BUILT_IN, TEAM, YOURS, Source, built_in_folder, sources, user_folder
from ringside.rundir import iter_files
from ringside.spec import (
    FORMAT,
    STRATEGY_OF_TYPE,
    AccelerateSettings,
    Device,
    TrainingSettings,
)
from ringside.words import say

__all__ = [
    "BUILT_IN", "NAME_PATTERN", "TEAM", "YOURS", "About", "Library", "Preset", "PresetFile",
    "accelerate_config", "accelerate_text", "beyond_accelerate", "built_in_folder", "json_schema",
    "load_preset", "parse_preset", "render", "user_folder",
]  # fmt: skip

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# A preset may come from a stranger, so nothing that names a library to load or a file to write.
ENVIRONMENT_PATTERN = re.compile(
    r"(?!.*(PLUGIN|FILE|CONF|PIPE|PATH|DIR$))(NCCL|TORCH_NCCL|GLOO)_[A-Z0-9_]+|OMP_NUM_THREADS"
)
RENDERED_PROCESSES = 2

_Text = Annotated[str, Meta(max_length=2000)]
_Environment = Annotated[
    dict[str, str],
    Meta(extra_json_schema={"propertyNames": {"pattern": f"^({ENVIRONMENT_PATTERN.pattern})$"}}),
]


class About(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person needs to choose: words only, nothing that changes a run but `devices`."""

    title: Annotated[str, Meta(min_length=1, max_length=80)]
    why: _Text
    when: _Text
    limits: _Text = ""
    author: Annotated[str, Meta(max_length=200)] = ""
    devices: Annotated[tuple[Device, ...], Meta(min_length=1)] = ("cuda", "cpu")


class PresetFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `presets/NAME.yaml`."""

    format: int = FORMAT
    about: About
    accelerate: AccelerateSettings
    training: TrainingSettings = TrainingSettings()
    environment: _Environment = {}

    def __post_init__(self) -> None:
        for name, value in self.environment.items():
            if not ENVIRONMENT_PATTERN.fullmatch(name):
                raise ValueError(say("yaml.environment_name", name=name))
            if not value.isprintable() or "/" in value:
                raise ValueError(say("yaml.environment_value", name=name))


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A preset file with its name and origin; `given` holds the dotted keys written in it.

    `checksum` is the SHA-256 of the file's bytes, in hexadecimal; `source` the library's place.
    """

    name: str
    origin: str
    path: str
    file: PresetFile
    given: frozenset[str]
    checksum: str = ""
    source: str = ""

    @property
    def about(self) -> About:
        """Title, why, when, limits, author, devices."""
        return self.file.about


def parse_preset(data: bytes | str, *, name: str, origin: str, path: str = "") -> Preset:
    """Read preset text; raises PresetError with line, key and the mend."""
    document = yaml_text.load_text(data, origin=Path(path).name or f"{name}.yaml")
    if not isinstance(document.value, dict):
        raise yaml_text.fault(document.origin, say("yaml.no_parts"))
    # Before the keys are looked at: a newer format may have keys that look misspelt here.
    written = document.value.get("format")
    if isinstance(written, int) and written > FORMAT:
        raise PresetError(say("yaml.newer", origin=document.origin, format=written, known=FORMAT))
    file = document.convert(PresetFile)
    given = frozenset(_dotted(document.value))
    raw = data.encode() if isinstance(data, str) else data
    return Preset(
        name=name, origin=origin, path=path, file=file, given=given,
        checksum=hashlib.sha256(raw).hexdigest(),
    )  # fmt: skip


def load_preset(path: Path, *, origin: str = "file", name: str | None = None) -> Preset:
    """Read one preset file; without `name` the preset is called as the file."""
    name = path.stem if name is None else name
    if not NAME_PATTERN.fullmatch(name):
        raise PresetError(say("yaml.bad_name", name=name))
    data = yaml_text.read_bytes(path)
    return parse_preset(data, name=name, origin=origin, path=str(path))


class Library:
    """All presets this user can choose: library by library, `single` before DDP before FSDP.

    A name taken by an earlier library gets its origin in front; `shadowed` tells, for each such
    name, which preset has the plain one.
    """

    def __init__(self) -> None:
        self.presets: dict[str, Preset] = {}
        self.faults: list[PresetError] = []
        self.sources = tuple(sources())
        self.shadowed: dict[str, str] = {}
        for source in self.sources:
            if source.fault is not None:
                self.faults.append(PresetError(source.fault))
            for preset in sorted(self._read(source), key=_place):
                plain, name = preset.name, preset.name
                if plain in self.presets:
                    name = f"{source.prefix}:{plain}"
                    self.shadowed[name] = plain
                self.presets[name] = msgspec.structs.replace(preset, name=name)
        _kept().save()

    def _read(self, source: Source) -> Iterator[Preset]:
        if source.folder is None:
            return
        for path in iter_files(source.folder, "*.yaml"):
            try:
                preset = _known(path)
                yield msgspec.structs.replace(preset, origin=source.origin, source=source.place)
            except PresetError as fault:
                self.faults.append(fault)

    def __iter__(self) -> Iterator[Preset]:
        return iter(self.presets.values())

    def get(self, name: str) -> Preset:
        """The preset of this name; an unknown one is a PresetError with the nearest name."""
        if name in self.presets:
            return self.presets[name]
        if broken := [str(fault) for fault in self.faults if str(fault).startswith(f"{name}.yaml")]:
            raise PresetError(broken[0])
        hint = nearest(name, self.presets)
        raise PresetError(say("request.no_preset", name=name, hint=hint))


@functools.cache
def _kept() -> FileCache[Preset]:
    return FileCache("presets", Preset)


def _known(path: Path) -> Preset:
    """As `load_preset`, but a file that has not changed is read once: 500 files take seconds."""
    preset = _kept().get(path)
    if preset is None:
        signature = signature_of(path)
        preset = load_preset(path)
        _kept().put(path, preset, signature)
    return preset


def _place(preset: Preset) -> tuple[int, bool, str]:
    file = preset.file
    order = list(STRATEGY_OF_TYPE).index(file.accelerate.distributed_type)
    return order, file.training.parallelism != "no", preset.name


def accelerate_config(settings: AccelerateSettings, num_processes: int) -> dict[str, Any]:
    """The content of an Accelerate config file; port 0 lets the launcher take a free one.

    The count stands in it literally: without it, or with -1, `accelerate launch` 1.15 refuses.
    """
    config: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": settings.distributed_type,
        "mixed_precision": settings.mixed_precision,
        "num_machines": 1,
        "num_processes": num_processes,
        "machine_rank": 0,
        "main_process_port": 0,
        "main_training_function": "main",
        "use_cpu": False,
        "debug": False,
    }
    if settings.fsdp_config is not None:
        config["fsdp_config"] = msgspec.to_builtins(settings.fsdp_config)
    return config


def render(preset: Preset, num_processes: int | None = None) -> str:
    """The Accelerate file of a preset as text, with a header that says where it comes from."""
    settings = preset.file.accelerate
    by_default = 1 if settings.strategy == "single" else RENDERED_PROCESSES
    count = settings.num_processes or by_default if num_processes is None else num_processes
    if count < 1 or (settings.strategy == "single" and count > 1):
        raise PresetError(say("yaml.bad_processes", name=preset.name, count=count))
    header = (
        f"# Generated from presets/{preset.name}.yaml; edit that file and run "
        "`ringside presets render`.\n"
        "# Other process counts: accelerate launch --num_processes N.\n"
    )
    return header + yaml_text.dump(accelerate_config(settings, count))


def accelerate_text(preset: Preset) -> str:
    """Accelerate's YAML alone, without a word about where it comes from."""
    settings = preset.file.accelerate
    by_default = 1 if settings.strategy == "single" else RENDERED_PROCESSES
    return yaml_text.dump(accelerate_config(settings, settings.num_processes or by_default))


def beyond_accelerate(preset: Preset) -> list[str]:
    """What the preset says and Accelerate's file cannot hold, as `training.compile = true`."""
    found = []
    for part in ("training", "environment"):
        content = msgspec.to_builtins(getattr(preset.file, part))
        usual = msgspec.to_builtins(TrainingSettings()) if part == "training" else {}
        found += [
            f"{part}.{name} = {msgspec.json.encode(value).decode()}"
            for name, value in content.items()
            if value != usual.get(name)
        ]
    return found


def json_schema() -> dict[str, Any]:
    """JSON Schema of a preset file, for editors."""
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **msgspec.json.schema(PresetFile)}


def _dotted(value: Any, prefix: str = "") -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _dotted(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"
