"""A zip of a stranger: refused in a sentence, and nothing is written."""

from __future__ import annotations

import io
import json
import stat
import struct
import zipfile
from pathlib import Path

import pytest

from ringside.errors import PlaybookError
from ringside.playbook import archive, store
from ringside.playbook.content import CONTENT


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def write(path: Path, files: dict[str, bytes], *extra: tuple[zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(name, data)
        for info, data in extra:
            made.writestr(info, data)
    return path


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def refused(path: Path, *words: str) -> None:
    before = sorted(store.own_folder().rglob("*")) if store.own_folder().exists() else []
    with pytest.raises(PlaybookError) as error:
        store.import_playbook(path)
    sentence = str(error.value)
    assert [word for word in words if word not in sentence] == []
    assert "Traceback" not in sentence
    after = sorted(store.own_folder().rglob("*")) if store.own_folder().exists() else []
    assert after == before
    presets = store.own_folder().parent / "presets"
    assert not presets.exists() or not list(presets.iterdir())


@pytest.mark.parametrize(
    "name", ["../evil.txt", "a/../../evil", "/etc/evil", "C:/evil", "a\\b", "a//b", "./a", "x\x01y"]
)
def test_names_that_lead_elsewhere(packed, tmp_path, name):
    refused(write(tmp_path / "bad.zip", members(packed) | {name: b"x"}), "no playbook has")
    assert not list(tmp_path.rglob("evil*"))


def test_a_link(packed, tmp_path):
    bad = write(tmp_path / "bad.zip", members(packed), (link("over-sockets/x"), b"/etc/passwd"))
    refused(bad, "link", "over-sockets/x")


def test_a_name_twice(packed, tmp_path):
    with pytest.warns(UserWarning, match="Duplicate"):
        bad = write(
            tmp_path / "bad.zip", members(packed), (zipfile.ZipInfo("over-sockets/README.md"), b"")
        )
    refused(bad, "twice")
    again = {**members(packed), "over-sockets/readme.MD": b""}
    refused(write(tmp_path / "bad2.zip", again), "twice")


def test_an_encrypted_member(packed, tmp_path):
    data = bytearray(packed.read_bytes())
    # The general purpose flags stand 8 bytes into an entry of the central directory.
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<H", data, at + 8, struct.unpack_from("<H", data, at + 8)[0] | 1)
    bad = tmp_path / "bad.zip"
    bad.write_bytes(data)
    refused(bad, "encrypted")


def test_a_bomb(packed, tmp_path):
    zeros = {"over-sockets/charts/c.svg": bytes(50 << 20)}
    refused(write(tmp_path / "bad.zip", members(packed) | zeros), "200 times")


def test_a_member_that_says_it_is_10_gb(packed, tmp_path):
    data = bytearray(packed.read_bytes())
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 4_000_000_000)
    bad = tmp_path / "bad.zip"
    bad.write_bytes(data)
    refused(bad, "64 MiB")


def test_a_size_that_lies(packed, tmp_path):
    """More comes out than the directory says: no more than that is read, and the check fails."""
    data = bytearray(packed.read_bytes())
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 10)
    bad = tmp_path / "bad.zip"
    bad.write_bytes(data)
    refused(bad, "damaged")


def test_too_many_files(packed, tmp_path):
    many = {f"over-sockets/charts/c{n}.svg": b"" for n in range(archive.MAX_FILES)}
    refused(write(tmp_path / "bad.zip", members(packed) | many), "more than 2000 files")


def test_what_is_no_playbook(packed, tmp_path):
    refused(write(tmp_path / "photos.zip", {"a.jpg": b"x"}), "holds no playbook.json")
    (tmp_path / "text.zip").write_text("hello")
    refused(tmp_path / "text.zip", "is no zip")
    (tmp_path / "cut.zip").write_bytes(packed.read_bytes()[:5000])
    refused(tmp_path / "cut.zip", "is no zip")
    refused(tmp_path / "nothing.zip", "There is no")
    (tmp_path / "folder").mkdir()
    refused(tmp_path / "folder", "lacks playbook.json")


def changed(packed: Path, tmp_path: Path, **fields: object) -> Path:
    files = members(packed)
    content = json.loads(files[f"over-sockets/{CONTENT}"]) | fields
    files[f"over-sockets/{CONTENT}"] = json.dumps(content).encode()
    return write(tmp_path / "changed.zip", files)


def test_a_newer_format(packed, tmp_path):
    refused(changed(packed, tmp_path, format=2), "format 2", "update Ringside")


def test_damaged_json(packed, tmp_path):
    files = members(packed)
    files[f"over-sockets/{CONTENT}"] = files[f"over-sockets/{CONTENT}"][:-40]
    refused(write(tmp_path / "bad.zip", files), "damaged")
    refused(changed(packed, tmp_path, runs=7), "damaged")
    refused(changed(packed, tmp_path, name="../../x"), "damaged")
    refused(changed(packed, tmp_path, chosen="nobody"), "damaged")


def test_a_missing_or_changed_file(packed, tmp_path):
    files = members(packed)
    del files["over-sockets/README.md"]
    refused(write(tmp_path / "bad.zip", files), "lacks README.md")
    files["over-sockets/README.md"] = b"something else"
    refused(write(tmp_path / "bad.zip", files), "README.md", "is not what it was")


def test_a_list_of_files_that_names_others(packed, tmp_path):
    for name in ("../x.md", "/etc/passwd", "app/cli.py", "runs/x/spec.json", "charts/a.html"):
        files = json.loads(members(packed)[f"over-sockets/{CONTENT}"])["files"]
        refused(changed(packed, tmp_path, files={**files, name: "0" * 64}), "no playbook has")


def test_a_preset_that_is_none(packed, tmp_path):
    import hashlib

    files = members(packed)
    content = json.loads(files[f"over-sockets/{CONTENT}"])
    bad = b"about: 7\n"
    files["over-sockets/preset/ddp.yaml"] = bad
    content["files"]["preset/ddp.yaml"] = hashlib.sha256(bad).hexdigest()
    content["preset"] = "ddp"
    files[f"over-sockets/{CONTENT}"] = json.dumps(content).encode()
    refused(write(tmp_path / "bad.zip", files), "preset cannot be used")


def test_what_is_not_on_the_list_is_not_unpacked(packed, tmp_path):
    more = members(packed) | {"over-sockets/setup.py": b"x", "__MACOSX/y": b"x"}
    receipt = store.import_playbook(write(tmp_path / "more.zip", more))
    assert not list((store.own_folder() / receipt.name).rglob("setup.py"))


def test_a_linked_file_of_a_folder_is_refused(packed, tmp_path):
    receipt = store.import_playbook(packed)
    folder = store.own_folder() / receipt.name
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to("/etc/hostname")
    with pytest.raises(PlaybookError, match="link"):
        store.packed(store.find_playbook(receipt.name))


def test_equal_content_makes_equal_bytes(packed):
    playbook, files = archive.read_all(archive.open_source(packed))
    assert archive.zip_bytes(playbook, files) == packed.read_bytes()
    assert zipfile.ZipFile(io.BytesIO(packed.read_bytes())).testzip() is None
