"""`ringside presets adapt`."""

from __future__ import annotations

import shlex

import msgspec

from app.commands.reading import print_json
from ringside import preset_store
from ringside.adaptation import Adaptation, adaptations, adapted_text, why_none
from ringside.errors import PresetError
from ringside.hardware import read_hardware
from ringside.presets import Library, Preset
from ringside.words import say


def adapt(
    name: str,
    *,
    devices: int | None,
    made_for: int | None,
    micro_batch: int | None,
    choose: str | None,
    save_as: str | None,
    as_json: bool,
) -> None:
    """Print the ways, or keep the chosen one as a preset."""
    if (choose is None) != (save_as is None):
        raise PresetError("--choose and --save-as go together: which way, and under which name.")
    preset = Library().get(name)
    ways = adaptations(
        preset, read_hardware(), devices=devices, made_for=made_for, micro_batch=micro_batch
    )
    if choose is not None and save_as is not None:
        _save(preset, ways, choose, save_as)
    elif as_json:
        print_json([msgspec.to_builtins(way) for way in ways])
    elif not ways:
        print(why_none(preset, made_for))
    else:
        for way in ways:
            print(say("terminal.figure", label=way.kind, value=way.sentence))
            print(f"    {_command(name, way)}")


def _save(preset: Preset, ways: tuple[Adaptation, ...], choose: str, save_as: str) -> None:
    way = next((one for one in ways if one.kind == choose), None)
    if way is None:
        possible = ", ".join(one.kind for one in ways)
        instead = f"choose {possible}" if possible else why_none(preset)
        raise PresetError(
            f"{choose} is no way for {preset.name} here; {instead}.".replace("..", ".")
        )
    kept = preset_store.save(save_as, adapted_text(preset, way))
    print(say("presets.saved", name=kept.name, path=kept.path))
    print(f"    ringside run {kept.name} --batch {way.batch}")


def _command(name: str, way: Adaptation) -> str:
    return shlex.join(["ringside", "run", name, *way.flags])
