"""Saving, renaming, versions: nothing that was saved is ever lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from ringside import preset_store
from ringside.errors import PresetError, RingsideError
from ringside.preset_store import clone, export, free_name, rename, replace, save, versions
from ringside.presets import Library, user_folder

TEXT = """\
format: 1
about: {title: Ours, why: It is faster, when: Always}
accelerate: {distributed_type: MULTI_GPU}
training: {accumulation_steps: %d}
"""


def text(steps: int = 2) -> bytes:
    return (TEXT % steps).encode()


def kept() -> list[str]:
    return sorted(path.name for path in user_folder().glob("*.yaml"))


def test_a_taken_name_is_never_overwritten():
    save("ours", text(2))
    for name in ("ours", "ddp"):
        with pytest.raises(PresetError, match=f"'{name}' exists already.*{name}_2"):
            save(name, text(4))
    assert Library().get("ours").file.training.accumulation_steps == 2
    save("ours_2", text(4))
    assert free_name("ours") == "ours_3"
    assert free_name("free") == "free"


def test_a_broken_file_takes_a_name_too():
    """Else the name that is offered instead is the very one that is taken."""
    user_folder().mkdir(parents=True)
    (user_folder() / "ours.yaml").write_text("about: 7\n")
    assert free_name("ours") == "ours_2"
    with pytest.raises(PresetError, match="such as ours_2"):
        save("ours", text())
    assert save(free_name("ours"), text()).name == "ours_2"


def test_what_is_no_preset_is_not_saved():
    with pytest.raises(PresetError, match=r"ours.yaml"):
        save("ours", b"about: [")
    assert kept() == []


PEOPLE = """
import sys
from pathlib import Path
from ringside.errors import PresetError
from ringside.preset_store import save
text = Path(sys.argv[1]).read_text()
while not Path(sys.argv[2]).exists():
    pass
won = []
for number in range(8):
    try:
        save(f"one_{number}", text.replace("Ours", sys.argv[3]).encode())
        won.append(number)
    except PresetError:
        pass
print(*won)
"""


def test_two_people_who_save_at_once_lose_nothing(tmp_path):
    """Each name belongs to exactly one of two processes, and holds all of that one's text."""
    (tmp_path / "text").write_bytes(text())
    argv = [sys.executable, "-c", PEOPLE, str(tmp_path / "text"), str(tmp_path / "go")]
    people = [
        subprocess.Popen([*argv, who], stdout=subprocess.PIPE, text=True) for who in ("Ada", "Bob")
    ]
    (tmp_path / "go").touch()
    ada, bob = ({int(word) for word in one.communicate()[0].split()} for one in people)
    assert ada | bob == set(range(8))
    assert ada & bob == set()
    library = Library()
    for number in range(8):
        who = "Ada" if number in ada else "Bob"
        assert library.get(f"one_{number}").about.title == who


def test_every_replaced_version_stays(monkeypatch):
    first = save("ours", text(2))
    second = replace(first, text(4))
    third = replace(second, text(8))
    found = versions(third)
    assert [one.is_present for one in found] == [True, False, False]
    assert [Path(one.path).read_bytes() for one in found] == [text(8), text(4), text(2)]
    assert [one.saved for one in found] == sorted((one.saved for one in found), reverse=True)
    assert [p.name for p in Library() if p.origin == "yours"] == ["ours"]


def test_an_edit_by_hand_is_kept_when_it_is_replaced():
    save("ours", text(2))
    path = user_folder() / "ours.yaml"
    path.write_bytes(text(3))
    by_hand = Library().get("ours")
    assert [one.is_present for one in versions(by_hand)] == [True, False]
    replace(by_hand, text(4))
    contents = [Path(one.path).read_bytes() for one in versions(Library().get("ours"))]
    assert contents == [text(4), text(3), text(2)]


def test_a_version_that_nobody_has_seen_is_not_replaced():
    seen = save("ours", text(2))
    replace(seen, text(4))
    with pytest.raises(PresetError, match="changed meanwhile"):
        replace(seen, text(8))
    assert Library().get("ours").file.training.accumulation_steps == 4


def test_people_who_replace_at_once_all_find_theirs(monkeypatch):
    seen = save("ours", text(1))

    def put(steps: int) -> bool:
        try:
            replace(seen, text(steps))
        except PresetError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = dict(zip(range(2, 10), pool.map(put, range(2, 10)), strict=True))
    there = {Path(one.path).read_bytes() for one in versions(Library().get("ours"))}
    assert {text(steps) for steps, went in done.items() if went} | {text(1)} <= there
    assert any(done.values())


def test_a_renamed_preset_takes_its_history_along():
    replace(save("ours", text(2)), text(4))
    renamed = rename(Library().get("ours"), "theirs")
    assert kept() == ["theirs.yaml"]
    assert [Path(one.path).read_bytes() for one in versions(renamed)] == [text(4), text(2)]
    assert not (user_folder() / ".history" / "ours").exists()
    with pytest.raises(PresetError, match="exists already"):
        rename(renamed, "ddp")
    with pytest.raises(PresetError, match="no name"):
        rename(renamed, "../x")


def test_built_in_presets_stay_as_they_are():
    ddp = Library().get("ddp")
    for change in (lambda: rename(ddp, "x"), lambda: replace(ddp, text())):
        with pytest.raises(PresetError, match=r"built in.*clone ddp NEW"):
            change()
    copy = clone(ddp, "mine")
    assert Path(copy.path).read_bytes() == Path(ddp.path).read_bytes()
    assert copy.checksum == ddp.checksum
    assert copy.path == str(user_folder() / "mine.yaml")


def test_presets_of_the_hub_are_changed_there():
    preset = msgspec.structs.replace(save("ours", text()), source="hf://datasets/a/b@c")
    with pytest.raises(PresetError, match="Hub"):
        replace(preset, text(4))


def test_a_disk_without_hard_links(monkeypatch):
    def refuse(*_):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    save("ours", text(2))
    assert Library().get("ours").file.training.accumulation_steps == 2
    with pytest.raises(FileExistsError):
        preset_store._publish(user_folder() / "ours.yaml", text(4))
    assert [p for p in user_folder().iterdir() if p.name.endswith(".tmp")] == []


def test_a_full_disk_is_a_sentence_and_leaves_nothing(monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(RingsideError, match="No space left on device"):
        save("ours", text())
    assert list(user_folder().glob("*")) == []


def test_the_team_keeps_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("RINGSIDE_LIBRARY", str(tmp_path / "team"))
    saved = save("warm", text(), folder=tmp_path / "team")
    assert (saved.origin, Library().get("warm").origin) == ("team", "team")
    assert rename(Library().get("warm"), "hot").path == str(tmp_path / "team" / "hot.yaml")


def test_export_of_a_text(tmp_path):
    preset = Library().get("ddp")
    assert export(preset, tmp_path, b"a: 1\n").read_bytes() == b"a: 1\n"
    with pytest.raises(PresetError, match="exists already"):
        export(preset, tmp_path, b"a: 2\n")
