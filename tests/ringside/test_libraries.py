"""Libraries in their order: folders, Git checkouts, the Hub; what comes from where is told."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ringside import hub_library, libraries
from ringside.errors import PresetError
from ringside.hub_library import Address, Pin
from ringside.presets import Library

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))

TEXT = (
    "about: {title: %s, why: w, when: w, author: Lea}\naccelerate: {distributed_type: MULTI_GPU}\n"
)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders of the team, in this order."""
    made = [tmp_path / "first", tmp_path / "second"]
    for folder in made:
        folder.mkdir()
    monkeypatch.setenv("RINGSIDE_LIBRARY", os.pathsep.join(map(str, made)))
    return made


def test_a_clash_of_names_hides_nothing(folders):
    first, second = folders
    for folder, title in ((first, "A"), (second, "B")):
        (folder / "ddp.yaml").write_text(TEXT % title)
        (folder / "warm.yaml").write_text(TEXT % title)
    library = Library()
    assert library.get("ddp").origin == "built-in"
    assert [library.get(name).about.title for name in ("team:ddp", "team2:ddp")] == ["A", "B"]
    assert [library.get(name).about.title for name in ("warm", "team2:warm")] == ["A", "B"]
    assert library.shadowed == {"team:ddp": "ddp", "team2:ddp": "ddp", "team2:warm": "warm"}
    assert library.get("warm").source == str(first)


def test_the_checksum_is_that_of_the_bytes(folders):
    data = b"\xef\xbb\xbf" + (TEXT % "A").encode()
    (folders[0] / "warm.yaml").write_bytes(data)
    assert Library().get("warm").checksum == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("", []), ("/a", ["/a"]), (" /a : /b ", ["/a", "/b"]), ("::/a:", ["/a"]),
        ("/a:hf://datasets/x/y@v1:/b", ["/a", "hf://datasets/x/y@v1", "/b"]),
    ],
)  # fmt: skip
def test_the_colon_of_an_address_separates_nothing(text, places, monkeypatch):
    monkeypatch.setenv("RINGSIDE_LIBRARY", text)
    assert libraries.team_places() == places


def test_a_checkout_tells_its_remote_and_commit_and_runs_nothing(folders, tmp_path):
    folder, marker = folders[0], tmp_path / "marker"
    script = tmp_path / "hook"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    url = "https://lea:p@ss@example.org/team/presets.git"
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "m"],
                  ["remote", "add", "origin", url], ["config", "core.fsmonitor", str(script)],
                  ["config", "core.sshCommand", str(script)]):  # fmt: skip
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    marker.unlink(missing_ok=True)
    source = next(one for one in libraries.sources() if one.folder == folder)
    said = libraries.provenance(source)
    assert said == f"{folder} (https://example.org/team/presets.git @ {head.stdout[:12]})"
    assert not marker.exists()
    plain = next(one for one in libraries.sources() if one.folder == folders[1])
    assert libraries.provenance(plain) == str(folders[1])


@pytest.mark.parametrize(
    "text",
    ["hf://x", "hf://models/a/b", "hf://datasets/a", "hf://datasets/a/b@", "hf://datasets/../b",
     "hf://datasets/a/b@../c", "hf://datasets/a b/c"],
)  # fmt: skip
def test_a_wrong_address_is_a_sentence_beside_the_list(text, monkeypatch):
    monkeypatch.setenv("RINGSIDE_LIBRARY", text)
    assert "hf://datasets/OWNER/NAME@REVISION" in str(Library().faults[0])
    assert Library().get("ddp").origin == "built-in"


def test_what_was_not_fetched_yet_says_how(monkeypatch):
    monkeypatch.setenv("RINGSIDE_LIBRARY", "hf://datasets/acme/presets")
    assert "run `ringside presets fetch`" in str(Library().faults[0])


FETCH = """
import sys
from ringside import hub_library
print(hub_library.fetch(hub_library.parse_address(sys.argv[1])).commit)
"""


def test_the_hub_is_read_at_the_commit_that_was_fetched(tmp_path, monkeypatch):
    from fake_hub import COMMIT, REPOSITORY, serving

    files = tmp_path / "repository"
    (files / "deep").mkdir(parents=True)
    (files / "warm.yaml").write_text(TEXT % "Warm")
    (files / "deep" / "cold.yaml").write_text(TEXT % "Cold")
    (files / "weights.bin").write_bytes(b"x" * 100)
    address = f"hf://datasets/{REPOSITORY}@main"
    monkeypatch.setenv("RINGSIDE_LIBRARY", address)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    with serving(files) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        # The library reads its folders when it is imported, so this needs a process of its own.
        argv = [sys.executable, "-c", FETCH, address]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert not any("weights.bin" in path for path in hub.asked)
        absent = [*argv[:-1], "hf://datasets/some/thing"]
        failed = subprocess.run(absent, capture_output=True, text=True, check=False)
        assert "is not on the Hub, or not for you" in failed.stderr
    assert done.stdout.strip() == COMMIT
    library = Library()  # the server is gone: nothing is asked of it any more
    assert library.faults == []
    assert library.get("warm").source == f"hf://datasets/{REPOSITORY}@{COMMIT[:12]}"
    assert "cold" not in library.presets
    offline = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "cannot be fetched" in offline.stderr
    assert Library().get("warm").about.title == "Warm"


def test_a_pin_whose_files_are_gone_counts_as_none(tmp_path):
    address = Address(repository="a/b")
    hub_library._write({address.text: Pin(commit="c", folder=str(tmp_path / "gone"))})
    assert hub_library.pinned(address) is None
    (tmp_path / "gone").mkdir()
    assert hub_library.pinned(address).commit == "c"
    hub_library._pins_file().write_bytes(b"{")
    assert hub_library.pinned(address) is None


def test_offline_is_a_sentence(monkeypatch):
    import huggingface_hub

    def refuse(*_, **__):
        raise ConnectionError("no route")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", refuse)
    with pytest.raises(PresetError, match="presets that were fetched before stay"):
        hub_library.fetch(Address(repository="a/b"))
