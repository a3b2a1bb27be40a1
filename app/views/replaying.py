"""The form of a run that is adapted to this machine: of a preset, or of a playbook."""

from __future__ import annotations

from typing import Any

from app.views.library_playbooks import kept_playbook
from ringside.adaptation import adaptations
from ringside.data import source_names
from ringside.errors import PresetError
from ringside.hardware import Hardware
from ringside.overrides import locate
from ringside.playbook.replay import keep_preset, replay
from ringside.presets import Library
from ringside.request import RunRequest
from ringside.words import say

Filled = tuple[dict[str, Any], dict[str, str], list[str]]
"""Fields by name, settings by their dotted name, and what the form cannot hold in sentences."""


def adapted_preset(name: str, way: str, hardware: Hardware) -> Filled:
    """A preset that was made for other devices, in one of its ways; PresetError for none."""
    preset = Library().get(name)
    for found in adaptations(preset, hardware):
        if found.kind == way:
            values = {"batch": found.batch, **_devices(found.processes, hardware)}
            steps = found.accumulation_steps
            is_own = steps == preset.file.training.accumulation_steps
            settings = {} if is_own else {"training.accumulation_steps": str(steps)}
            return {"preset": preset.name, **values}, settings, [found.sentence]
    raise PresetError(say("library.no_way", way=way, preset=name))


def replayed(name: str, way: str | None, hardware: Hardware) -> Filled:
    """The run of a playbook; its preset has to be in the library."""
    entry = kept_playbook(name)
    found = replay(entry, hardware, choose=way)
    if not found.is_kept:
        raise PresetError(say("library.not_kept", preset=found.preset))
    values = _of_request(found.request, hardware)
    overrides = found.request.overrides.items()
    settings = {".".join(locate(key)): value for key, value in overrides}
    if found.needs_data:
        values.pop("source", None)
        values.pop("folder", None)
    return {"preset": found.preset, **values}, settings, list(found.notes)


def make_ready(name: str) -> str:
    """The preset with which a playbook runs, saved in the library where it was missing."""
    return keep_preset(kept_playbook(name))


def _of_request(request: RunRequest, hardware: Hardware) -> dict[str, Any]:
    """What a run is asked for by, as fields."""
    names = ("model", "epochs", "batch", "image_size", "seed", "keep_global_batch")
    values = {name: getattr(request, name) for name in names}
    found = {name: value for name, value in values.items() if value is not None}
    count = request.processes
    return found | _data(request.data) | ({} if count is None else _devices(count, hardware))


def _data(text: str) -> dict[str, Any]:
    known = {source.name for source in source_names()} - {"folder"}
    is_source = text.partition(":")[0] in known
    return {"source": text} if is_source else {"source": "folder", "folder": text}


def _devices(count: int, hardware: Hardware) -> dict[str, Any]:
    """So many GPUs where there are any, else so many processes."""
    if not hardware.gpus:
        return {"processes": count}
    return {"gpus": [gpu.index for gpu in hardware.gpus[:count]]}
