"""Two people at one preset, deleting, and bringing a version back: nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ringside import preset_store
from ringside.errors import PresetError
from ringside.presets import Library

TEXT = """\
format: 1
about: {title: Ours, why: It is faster, when: Always}
accelerate: {distributed_type: MULTI_GPU}
training: {accumulation_steps: %d}
"""


def text(steps):
    return (TEXT % steps).encode()


def steps():
    return Library().get("ours").file.training.accumulation_steps


def test_of_two_who_saved_at_once_both_are_there():
    opened = preset_store.save("ours", text(1))
    preset_store.replace(opened, text(2))
    mine = preset_store.seen(Library().get("ours"), opened.checksum)
    with pytest.raises(preset_store.ChangedError, match="changed meanwhile"):
        preset_store.replace(mine, text(3))
    preset_store.lay_aside(mine, text(3))
    assert steps() == 2
    found = preset_store.versions(Library().get("ours"))
    assert [Path(one.path).read_bytes() for one in found] == [text(3), text(2), text(1)]
    assert [one.is_present for one in found] == [False, True, False]
    preset_store.bring_back(Library().get("ours"), found[0].checksum)
    assert steps() == 3
    with pytest.raises(PresetError, match="no version 'nope'"):
        preset_store.bring_back(Library().get("ours"), "nope")


def test_a_deleted_preset_comes_back_with_its_versions():
    first = preset_store.save("ours", text(1))
    folder = preset_store.delete(preset_store.replace(first, text(2)))
    assert "ours" not in Library().presets
    assert len(list(folder.glob("*.yaml"))) == 2
    again = preset_store.save("ours", text(4))
    assert len(preset_store.versions(again)) == 3


def test_what_is_built_in_cannot_be_deleted():
    with pytest.raises(PresetError, match="built in"):
        preset_store.delete(Library().get("ddp"))
    with pytest.raises(PresetError):
        preset_store.lay_aside(Library().get("ddp"), text(1))
    assert "ddp" in Library().presets
