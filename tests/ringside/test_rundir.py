"""Run directories: names that people type, files that are never half there, one sentence if not."""

from __future__ import annotations

import json
import re
import threading
from types import SimpleNamespace

import pytest

from ringside import rundir
from ringside.errors import RunDirError
from ringside.rundir import (
    RunDir,
    check_format,
    create_run_dir,
    find_run,
    list_run_dirs,
    runs_root,
    write_atomic,
)

FOX, OWL, FOX_2 = (
    "20260102-030405-calm-fox",
    "20260102-030406-calm-owl",
    "20251231-235959-swift-fox",
)


@pytest.fixture
def runs(root):
    """Three runs, and things beside them that are none."""
    for name in (FOX, OWL, FOX_2, "notes", ".ringside-trash", "20260102-calm-fox", "latest"):
        (root / name).mkdir(parents=True)
    for name in (FOX, OWL, FOX_2):
        (root / name / "spec.json").touch()
    return root


def test_the_folder_is_the_one_that_was_named(root, monkeypatch, tmp_path):
    assert runs_root() == root
    monkeypatch.delenv("RINGSIDE_RUNS")
    assert runs_root() == tmp_path / "home" / "ringside" / "runs"
    monkeypatch.setenv("RINGSIDE_RUNS", "here")
    assert runs_root().is_absolute()
    assert not root.exists()


def test_a_new_run_has_a_name_to_remember_and_its_folders(root):
    run = create_run_dir(root)
    assert re.fullmatch(r"\d{8}-\d{6}-[a-z]+-[a-z]+", run.id)
    assert run.name == "-".join(run.id.split("-")[2:])
    folders = {path.name for path in run.path.iterdir()}
    assert folders == {"ranks", "requests", "logs", "checkpoints"}
    assert [found.id for found in list_run_dirs(root)] == [run.id]


def test_no_two_runs_share_a_directory(root):
    assert len({create_run_dir(root).path for _ in range(30)}) == 30


def test_two_words_name_one_run(root, monkeypatch):
    """Of twelve pairs each is drawn once; when none is free, a run starts all the same."""
    monkeypatch.setattr(rundir, "_ADJECTIVES", ["calm", "swift", "warm"])
    monkeypatch.setattr(rundir, "_ANIMALS", ["fox", "hare", "owl", "wren"])
    names = [create_run_dir(root).name for _ in range(12)]
    assert len(set(names)) == 12
    monkeypatch.setattr(rundir, "time", SimpleNamespace(strftime=lambda _: "20990101-000000"))
    assert create_run_dir(root).name in names


@pytest.mark.parametrize("text", ["ox", "alm", "wl", "0102", "alm-fox", "fox-", "calm-o-"])
def test_a_piece_inside_a_word_names_no_run(runs, text):
    with pytest.raises(RunDirError, match="No run "):
        find_run(runs, text)


def test_runs_are_listed_newest_first_and_other_folders_are_left_alone(runs):
    assert [run.id for run in list_run_dirs(runs)] == [OWL, FOX, FOX_2]
    assert list_run_dirs(runs / "nowhere") == []


@pytest.mark.parametrize(
    ("text", "run_id"),
    [
        (FOX, FOX),
        ("calm-fox", FOX),
        ("swift-fox", FOX_2),
        ("swift", FOX_2),
        ("owl", OWL),
        ("20251231", FOX_2),
        ("030406", OWL),
        ("calm-o", OWL),
        ("sw", FOX_2),
        ("last", OWL),
        ("latest", OWL),
    ],
)
def test_a_run_is_found_by_what_people_type(runs, text, run_id):
    assert find_run(runs, text).id == run_id


def test_a_folder_that_was_never_whole_is_not_the_last_run(runs):
    (runs / "20270101-000000-brisk-newt").mkdir()
    assert find_run(runs, "last").id == OWL


def test_whole_words_go_before_parts(runs):
    """`calm-fox` is also a part of this newer run's id."""
    (runs / f"{FOX}-2").mkdir()
    assert find_run(runs, "calm-fox").id == FOX


@pytest.mark.parametrize(("text", "ids"), [("fox", [FOX, FOX_2]), ("calm", [OWL, FOX])])
def test_several_that_fit_are_named(runs, text, ids):
    with pytest.raises(RunDirError) as caught:
        find_run(runs, text)
    assert all(run_id in str(caught.value) for run_id in ids)


@pytest.mark.parametrize(
    "text", ["zebra", "", "notes", "..", "../runs", f"../runs/{FOX}", f"{FOX}/..", "/etc", "."]
)
def test_nothing_that_is_no_run_is_found(runs, text):
    """A link of the page carries this text: it must never lead out of the folder."""
    with pytest.raises(RunDirError, match="No run "):
        find_run(runs, text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [("clam-fox", "Did you mean 'calm-fox'?"), ("zebra", "`ringside list` shows the runs there.")],
)
def test_a_misspelt_run_is_guessed_else_the_list_is_named(runs, text, hint):
    with pytest.raises(RunDirError) as caught:
        find_run(runs, text)
    assert str(caught.value).endswith(hint)


@pytest.mark.parametrize("text", ["last", "calm-fox"])
def test_without_runs_the_sentence_says_so(root, text):
    with pytest.raises(RunDirError, match="There are none yet"):
        find_run(root, text)


# --- writing ----------------------------------------------------------------------------------


def test_a_whole_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    path = tmp_path / "x.json"
    for content in (b"old", b"new"):
        write_atomic(path, content)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write_atomic(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunDirError, match=r"x\.json cannot be written: No space left on device"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_several_threads_may_ask_for_the_same_at_once(root):
    """Two tabs of the page press Stop."""
    run = create_run_dir(root)
    faults = []

    def ask() -> None:
        try:
            for _ in range(20):
                run.request("stop")
        except RunDirError as fault:
            faults.append(fault)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert run.requested("stop")
    assert not run.requested("checkpoint")
    assert [path.name for path in run.requests.iterdir()] == ["stop.json"]


@pytest.fixture
def below_a_file(tmp_path):
    """A place where nobody can write, not even root."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "runs"


def test_a_place_that_cannot_be_written_is_a_sentence(below_a_file):
    with pytest.raises(RunDirError, match="Set RINGSIDE_RUNS to a folder that you may write"):
        create_run_dir(below_a_file)
    run = RunDir(below_a_file / FOX)
    for write in (lambda: run.request("stop"), lambda: run.write(run.spec, {})):
        with pytest.raises(RunDirError, match="cannot be written: Not a directory"):
            write()
    assert run.read(run.spec, dict) is None
    assert list_run_dirs(below_a_file) == []


# --- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"a": "\xff"}', b"null"])
def test_a_file_that_does_not_hold_what_is_wanted_is_none(root, content):
    run = create_run_dir(root)
    run.spec.write_bytes(content)
    assert run.read(run.spec, dict[str, str]) is None


def test_what_is_written_is_json_that_others_read(root):
    run = create_run_dir(root)
    run.write(run.spec, {"a": ["ä", 1, None]})
    assert json.loads(run.spec.read_bytes()) == {"a": ["ä", 1, None]}
    assert run.read(run.spec, dict) == {"a": ["ä", 1, None]}


def test_a_newer_format_is_refused_in_a_sentence():
    check_format(1, "spec.json")
    with pytest.raises(RunDirError, match=r"spec\.json has format 2, .*update Ringside"):
        check_format(2, "spec.json")
