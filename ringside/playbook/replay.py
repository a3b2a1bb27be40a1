"""The run of a playbook on this machine: what is adapted, and the command."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from ringside import preset_store
from ringside.adaptation import Adaptation, adaptations
from ringside.errors import PlaybookError, PresetError, RunDirError
from ringside.hardware import Hardware
from ringside.playbook.content import KeptRun, Playbook
from ringside.playbook.gathering import preset_text
from ringside.playbook.store import Entry, equal_preset, require
from ringside.presets import Library, Preset
from ringside.request import RunRequest
from ringside.spec import OWN_FILES
from ringside.words import say


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """`request` is what `ringside run` gets, `command` the same in one line for a shell.

    `ways`: how it fits another number of devices, the taken one first; empty where it fits as it
    is. `is_kept`: the preset is in the library. `needs_data`: the images are known by name only,
    so somebody has to say where they are. `notes` are sentences.
    """

    preset: str
    is_kept: bool
    request: RunRequest
    command: str
    ways: tuple[Adaptation, ...] = ()
    needs_data: bool = False
    notes: tuple[str, ...] = ()

    @property
    def flags(self) -> tuple[str, ...]:
        """The arguments of `ringside run` behind the preset."""
        return tuple(shlex.split(self.command)[3:])


def replay(
    entry: Entry,
    hardware: Hardware,
    *,
    data: str | None = None,
    devices: int | None = None,
    choose: str | None = None,
) -> Replay:
    """How to run it here; PlaybookError for a way that there is not.

    `data` replaces the images of the playbook, `choose` is the kind of an adaptation.
    """
    playbook = require(entry)
    run = playbook.run
    kept = _kept_name(entry, playbook)
    preset = kept or playbook.preset
    made_for = run.result.num_devices or run.result.num_processes
    ways = adaptations(
        Preset(name=preset, origin="file", path="", file=playbook.preset_file, given=frozenset()),
        hardware, devices=devices, made_for=made_for, micro_batch=run.micro_batch,
    )  # fmt: skip
    ways = _in_order(ways, choose, playbook)
    nameless = data is None and _is_nameless(playbook)
    request = RunRequest(
        preset=preset, data=data or ("DATA" if nameless else playbook.data.name), model=run.model,
        epochs=run.epochs, image_size=playbook.data.image_size, seed=run.seed,
        **(_adapted(ways[0], playbook) if ways else _as_it_was(run, made_for)),
    )  # fmt: skip
    return Replay(
        preset=preset,
        is_kept=kept is not None,
        request=request,
        command=command_of(request),
        ways=ways,
        needs_data=nameless,
        notes=tuple(_notes(playbook, hardware, ways, kept=kept, nameless=nameless)),
    )


def command_of(request: RunRequest) -> str:
    """The request as `ringside run ...`, quoted for a shell."""
    words = ["ringside", "run", request.preset, "--data", request.data]
    named = {
        "--model": request.model, "--epochs": request.epochs, "--batch": request.batch,
        "--processes": request.processes, "--image-size": request.image_size,
        "--seed": request.seed,
    }  # fmt: skip
    for flag, value in named.items():
        words += [] if value is None else [flag, str(value)]
    for key, text in request.overrides.items():
        words += ["--set", f"{key}={text}"]
    return shlex.join([*words, "--keep-global-batch"] if request.keep_global_batch else words)


def keep_preset(entry: Entry) -> str:
    """The preset's name in the library, after saving it there where it is missing."""
    playbook = require(entry)
    known = _kept_name(entry, playbook)
    if known is not None:
        return known
    try:
        name = preset_store.free_name(playbook.preset)
        return preset_store.save(name, preset_text(playbook.preset_file)).name
    except (PresetError, RunDirError) as error:
        raise PlaybookError(str(error)) from None


def _kept_name(entry: Entry, playbook: Playbook) -> str | None:
    """The name under which the import saved it, if it is still there; else an equal one."""
    named = entry.receipt.preset if entry.receipt is not None else None
    return named if named in Library().presets else equal_preset(playbook)


def _in_order(
    ways: tuple[Adaptation, ...], choose: str | None, playbook: Playbook
) -> tuple[Adaptation, ...]:
    """The chosen way first; by default the first, which keeps the global batch where one does."""
    if choose is None:
        return ways
    if all(way.kind != choose for way in ways):
        kinds = ", ".join(way.kind for way in ways) or "–"
        raise PlaybookError(say("playbook.no_way", choose=choose, name=playbook.name, kinds=kinds))
    return tuple(sorted(ways, key=lambda way: way.kind != choose))


def _adapted(way: Adaptation, playbook: Playbook) -> dict[str, Any]:
    """The fields of a request that the way decides."""
    found: dict[str, Any] = {"processes": way.processes, "batch": way.batch}
    if way.accumulation_steps != playbook.preset_file.training.accumulation_steps:
        found["overrides"] = {"accumulation_steps": str(way.accumulation_steps)}
    return found


def _as_it_was(run: KeptRun, devices: int) -> dict[str, Any]:
    """The same number of devices and the same global batch."""
    keeps = "--keep-global-batch" in run.command.split()
    batch = run.result.global_batch // (1 if keeps else run.accumulation_steps)
    return {
        "batch": batch, "processes": devices if devices > 1 else None, "keep_global_batch": keeps,
    }  # fmt: skip


def _is_nameless(playbook: Playbook) -> bool:
    """Whether the images lay in a folder of somebody's: all that is known is its name."""
    return playbook.data.source in OWN_FILES


def _notes(
    playbook: Playbook, hardware: Hardware, ways: tuple[Adaptation, ...], *, kept: str | None,
    nameless: bool,
) -> list[str]:  # fmt: skip
    notes = [ways[0].sentence] if ways else [say("playbook.replay_same")]
    if len(ways) > 1:
        others = ", ".join(way.kind for way in ways[1:])
        notes.append(say("playbook.replay_others", others=others))
    if playbook.hardware.device != hardware.device:
        here = say(f"playbook.device_{hardware.device}")
        notes.append(say("playbook.replay_device", there=playbook.hardware.label, here=here))
    if nameless:
        notes.append(say("playbook.replay_data", data=playbook.data.name))
    if kept is None:
        notes.append(say("playbook.replay_import", preset=playbook.preset))
    return notes
