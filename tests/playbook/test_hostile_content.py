"""What a stranger writes into `playbook.json`: it leads nowhere and breaks nothing."""

from __future__ import annotations

import json
import os
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.views.library_playbooks import playbook_rows, playbook_view
from ringside.errors import PlaybookError, RingsideError
from ringside.hardware import Gpu, Hardware
from ringside.playbook import archive, store
from ringside.playbook.content import CONTENT, decode_playbook, encode_playbook
from ringside.playbook.readme import readme
from ringside.playbook.replay import replay

FOUR = Hardware(gpus=tuple(
    Gpu(index=n, name="H200", uuid=str(n), memory_total_bytes=1, memory_used_bytes=0)
    for n in range(4)
))  # fmt: skip


def rewritten(packed: Path, target: Path, **fields: object) -> Path:
    """The playbook with other content, beside files that are as they were."""
    with zipfile.ZipFile(packed) as opened, zipfile.ZipFile(target, "w") as made:
        for name in opened.namelist():
            data = opened.read(name)
            if name.endswith(CONTENT):
                data = json.dumps(json.loads(data) | fields).encode()
            made.writestr(name, data)
    return target


@pytest.mark.parametrize("is_absolute", [True, False])
def test_the_id_of_a_run_leads_into_no_other_folder(packed, draft, tmp_path, is_absolute):
    """An import puts a mark into the folder of each run: into no folder but its own."""
    victim = tmp_path / "20260131-150000-own-run"
    victim.mkdir()
    tree = json.loads(encode_playbook(draft.playbook))
    runs = store.own_folder() / "over-sockets" / "runs"
    to = str(victim) if is_absolute else os.path.relpath(victim, runs)
    stranger = {**tree["runs"][0], "id": to}
    bad = rewritten(packed, tmp_path / "bad.zip", runs=[*tree["runs"], stranger])
    with pytest.raises(PlaybookError, match="damaged"):
        store.import_playbook(bad)
    assert list(victim.iterdir()) == []


def _leaves(node: Any, path: tuple[Any, ...] = ()) -> Any:
    if isinstance(node, dict | list):
        pairs = node.items() if isinstance(node, dict) else enumerate(node[:1])
        for key, inner in pairs:
            yield from _leaves(inner, (*path, key))
    else:
        yield path


def _with(tree: Any, path: tuple[Any, ...], value: object) -> bytes:
    copy = json.loads(json.dumps(tree))
    node = copy
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return json.dumps(copy).encode()


@pytest.mark.parametrize("value", [0, -1, 10**400, 1e308, -1e308, 2**62, "'", ""])
def test_no_value_breaks_the_list_or_a_replay(draft, tmp_path, value):
    """One bad playbook in a team's folder must not take the list of all others with it."""
    tree = json.loads(encode_playbook(draft.playbook))
    for path in _leaves(tree):
        try:
            playbook = decode_playbook(_with(tree, path, value), "x")
        except PlaybookError:
            continue
        entry = store.Entry(name="x", place="team", path=tmp_path, playbook=playbook)
        try:
            playbook_rows([entry])
            readme(playbook)
            playbook_view(entry, FOUR)
            replay(entry, FOUR, data="emoji", devices=playbook.run.result.num_devices)
        except RingsideError:
            continue


def test_a_command_without_a_closing_quote(draft, tmp_path):
    tree = json.loads(encode_playbook(draft.playbook))
    for run in tree["runs"]:
        run["command"] = "ringside run ddp --data 'emoji"
    playbook = decode_playbook(json.dumps(tree).encode(), "x")
    entry = store.Entry(name="x", place="team", path=tmp_path, playbook=playbook)
    assert replay(entry, Hardware(), data="emoji", devices=2).ways == ()


def test_a_directory_of_very_many_entries_is_not_read(tmp_path):
    """Python reads the whole list of members before anybody can count: 20 MB take seconds."""
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as made:
        for n in range(30_000):
            made.writestr(f"charts/c{n}.svg", b"")
    start = time.process_time()
    with pytest.raises(PlaybookError, match="more than 2000 files"):
        archive.open_source(path)
    assert time.process_time() - start < 0.1


def test_what_only_looks_like_a_zip_is_no_playbook(packed, tmp_path, monkeypatch):
    """Opening a pipe waits for somebody who writes into it, for ever."""
    monkeypatch.setenv("RINGSIDE_LIBRARY", os.fspath(tmp_path / "team"))
    folder = tmp_path / "team" / store.FOLDER
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.zip")
    assert [(one.name, one.playbook) for one in store.list_playbooks()] == [("pipe", None)]
    with pytest.raises(PlaybookError, match="no zip"):
        store.find_playbook(str(folder / "pipe.zip"))
