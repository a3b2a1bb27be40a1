"""Delete: only what is ours and over, all of it or nothing, and never through a link."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from ringside.errors import RunDirError
from ringside.identity import ProcessIdentity, boot_id
from ringside.records import write_owner
from ringside.rundir import RunDir, list_run_dirs
from ringside.shelf import deleting
from ringside.shelf.deleting import TRASH, check_deletable, empty_trash, move_aside, size_of

RUN, OTHER = "20260101-000000-calm-fox", "20260102-000000-swift-hare"


def delete_run(root, run):
    move_aside(root, run)
    empty_trash(root)


@pytest.fixture
def run(make_spec, write_run):
    return write_run(make_spec("ddp"), RUN)


@pytest.fixture
def outside(tmp_path):
    """Something precious elsewhere."""
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "photo.jpg").write_bytes(b"photo")
    return folder


def test_a_run_goes_and_leaves_nothing(run, root, make_spec, write_run):
    write_run(make_spec("ddp"), OTHER)
    delete_run(root, run)
    assert [other.id for other in list_run_dirs(root)] == [OTHER]
    assert not run.path.exists()
    assert not (root / TRASH).exists()
    assert list((root / ".locks").iterdir()) == []


def test_the_size_counts_files_and_no_link_s_target(run, outside):
    before = size_of(run)
    assert before.num_files == 3
    (run.path / "ranks").mkdir()
    (run.path / "ranks" / "rank0.jsonl").write_bytes(b"x" * 1000)
    (run.path / "there").symlink_to(outside)
    (run.path / "photo").symlink_to(outside / "photo.jpg")
    after = size_of(run)
    assert after.num_files == before.num_files + 2
    assert after.num_bytes == before.num_bytes + 1000 + len(str(outside / "photo.jpg"))


def test_links_inside_go_and_what_they_name_stays(run, root, outside):
    (run.path / "there").symlink_to(outside)
    (run.path / "photo").symlink_to(outside / "photo.jpg")
    delete_run(root, run)
    assert (outside / "photo.jpg").read_bytes() == b"photo"


def test_a_link_in_a_run_s_place_is_left_alone(run, root, outside):
    linked = root / OTHER
    linked.symlink_to(run.path)
    with pytest.raises(RunDirError, match="no run directory"):
        delete_run(root, RunDir(linked))
    assert run.spec.exists()
    assert linked.is_symlink()


@pytest.mark.parametrize(
    "path", ["..", "notes", f"../runs/{RUN}", f"{RUN}/ranks", f"deep/{RUN}", ""]
)
def test_only_a_run_directory_right_below_the_root(run, root, path):
    for folder in ("notes", f"deep/{RUN}", f"{RUN}/ranks"):
        (root / folder).mkdir(parents=True)
        (root / folder / "spec.json").write_bytes(run.spec.read_bytes())
    with pytest.raises(RunDirError, match="left alone"):
        delete_run(root, RunDir(root / path))
    assert run.spec.exists()
    assert (root / "deep" / RUN).exists()


@pytest.mark.parametrize("text", [None, "{", '{"format": 99}'])
def test_a_folder_that_is_no_run_of_ours_is_left_alone(run, root, text):
    run.spec.unlink()
    if text is not None:
        run.spec.write_text(text)
    with pytest.raises(RunDirError):
        delete_run(root, run)
    assert run.events.exists()


def test_a_run_under_way_stays(run, root):
    run.exit.unlink()
    write_owner(run, "supervisor")
    with pytest.raises(RunDirError, match=r"not over \(running\): stop it first"):
        delete_run(root, run)
    assert run.spec.exists()


def test_of_a_run_whose_owner_is_gone_the_books_are_closed_first(run, root):
    run.exit.unlink()
    owner = write_owner(run, "supervisor")
    gone = ProcessIdentity(pid=2**22 + 1, create_time=1.0, boot_id=boot_id())
    run.write(run.owner, msgspec.structs.replace(owner, process=gone))
    delete_run(root, run)
    assert not run.path.exists()


def test_a_run_of_another_machine_stays(run, root):
    run.exit.unlink()
    owner = write_owner(run, "supervisor")
    text = run.owner.read_text().replace(f'"{owner.host}"', '"elsewhere"')
    assert "elsewhere" in text
    run.owner.write_text(text)
    with pytest.raises(RunDirError, match="stop it first"):
        delete_run(root, run)


def test_a_run_whose_processes_are_left_over_stays_until_they_are_gone(run, root):
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
        env=os.environ | {"RINGSIDE_RUN": RUN},
    )  # fmt: skip
    try:
        with pytest.raises(RunDirError, match="leftovers --clean"):
            delete_run(root, run)
        assert run.spec.exists()
    finally:
        child.kill()
        child.wait()
    delete_run(root, run)
    assert not run.path.exists()


@pytest.mark.parametrize("name", ["resume_from", "weights"])
def test_a_run_that_another_one_begins_with_stays(run, root, make_spec, write_run, name):
    checkpoint = str(run.checkpoints / "last")
    other = write_run(make_spec("ddp", **{name: checkpoint}), OTHER, state=None)
    write_owner(other, "supervisor")
    with pytest.raises(RunDirError, match="swift-hare, not over yet, began with its checkpoint"):
        delete_run(root, run)
    other.exit.write_text('{"state": "stopped", "reason": "x", "started": 1, "finished": 2}')
    delete_run(root, run)
    assert not run.path.exists()


def test_half_deleted_is_gone_from_the_list_and_the_rest_goes_next_time(
    run, root, make_spec, write_run, monkeypatch
):
    other = write_run(make_spec("ddp"), OTHER)

    def killed(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(deleting.shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        delete_run(root, run)
    assert [left.id for left in list_run_dirs(root)] == [OTHER]
    assert len(list((root / TRASH).iterdir())) == 1
    monkeypatch.undo()
    delete_run(root, other)
    assert not (root / TRASH).exists()


def test_what_cannot_be_moved_is_whole(run, root, monkeypatch):
    def refuse(self, target):
        raise PermissionError(13, "Permission denied")

    before = sorted(path.name for path in run.path.iterdir())
    monkeypatch.setattr(type(run.path), "rename", refuse)
    with pytest.raises(RunDirError, match="Permission denied"):
        delete_run(root, run)
    assert sorted(path.name for path in run.path.iterdir()) == before


def test_a_trash_that_leads_elsewhere_is_not_used(run, root, outside):
    (root / TRASH).symlink_to(outside)
    with pytest.raises(RunDirError, match="left alone"):
        delete_run(root, run)
    empty_trash(root)
    assert run.spec.exists()
    assert (outside / "photo.jpg").exists()


def test_what_is_left_in_the_trash_is_told(run, root, monkeypatch):
    move_aside(root, run)
    monkeypatch.setattr(deleting.shutil, "rmtree", lambda *_, **__: None)
    with pytest.raises(RunDirError, match="Gone from every list"):
        empty_trash(root)


def test_only_what_was_moved_aside_is_removed_from_the_trash(run, root, outside):
    trash = root / TRASH
    for name in ("mine", f"{RUN}", f"{RUN}.12345", f"{RUN}.0123456G", f"x{RUN}.01234567"):
        (trash / name).mkdir(parents=True)
    (trash / f"{RUN}.00000000").write_text("a file")
    (trash / f"{RUN}.11111111").symlink_to(outside)
    strays = sorted(path.name for path in trash.iterdir())
    (trash / f"{OTHER}-2.0123abcd").mkdir()
    (root / ".trash" / f"{RUN}.01234567").mkdir(parents=True)
    delete_run(root, run)
    assert sorted(path.name for path in trash.iterdir()) == strays
    assert (outside / "photo.jpg").exists()
    assert (root / ".trash" / f"{RUN}.01234567").exists()


def test_another_user_s_run_and_trash_are_left_alone(run, root, monkeypatch):
    entry = root / TRASH / f"{OTHER}.01234567"
    entry.mkdir(parents=True)
    owner = run.path.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(RunDirError, match="belongs to another user"):
        delete_run(root, run)
    empty_trash(root)
    assert run.spec.exists()
    assert entry.exists()
    monkeypatch.setattr(os, "getuid", lambda: 0)
    delete_run(root, run)
    assert not (root / TRASH).exists()


def test_a_run_whose_end_is_not_on_record_stays_until_it_is_silent(run, root):
    run.exit.write_text("{")
    with pytest.raises(RunDirError, match="15 minutes"):
        delete_run(root, run)
    for path in (run.spec, run.events):
        os.utime(path, (1, 1))
    owner = write_owner(run, "supervisor")
    os.utime(run.owner, (1, 1))
    with pytest.raises(RunDirError, match="15 minutes"):
        delete_run(root, run)
    gone = ProcessIdentity(pid=2**22 + 1, create_time=1.0, boot_id=boot_id())
    run.write(run.owner, msgspec.structs.replace(owner, process=gone))
    os.utime(run.owner, (1, 1))
    delete_run(root, run)
    assert not run.path.exists()


def test_books_that_could_not_be_closed_keep_the_run(run, root, monkeypatch):
    run.exit.unlink()
    owner = write_owner(run, "supervisor")
    gone = ProcessIdentity(pid=2**22 + 1, create_time=1.0, boot_id=boot_id())
    run.write(run.owner, msgspec.structs.replace(owner, process=gone))
    monkeypatch.setattr(deleting, "reconcile", lambda run: False)
    with pytest.raises(RunDirError, match="may not be over"):
        delete_run(root, run)
    assert run.spec.exists()


def test_looking_ends_nothing_and_writes_nothing(run, root):
    run.exit.unlink()
    owner = write_owner(run, "supervisor")
    with pytest.raises(RunDirError, match="not over"):
        check_deletable(root, run)
    gone = ProcessIdentity(pid=2**22 + 1, create_time=1.0, boot_id=boot_id())
    run.write(run.owner, msgspec.structs.replace(owner, process=gone))
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE,
        env=os.environ | {"RINGSIDE_RUN": RUN},
    )  # fmt: skip
    try:
        check_deletable(root, run)
        assert child.poll() is None
        assert not run.exit.exists()
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("towards", ["link", "detour", "inside"])
def test_a_run_is_in_use_whatever_way_leads_to_it(
    run, root, make_spec, write_run, tmp_path, towards
):
    (tmp_path / "linked").symlink_to(root)
    run.checkpoints.symlink_to(tmp_path / "disk")
    path = {
        "link": tmp_path / "linked" / RUN / "last",
        "detour": root / OTHER / ".." / RUN / "last",
        "inside": run.checkpoints / "last",
    }[towards]
    other = write_run(make_spec("ddp", weights=str(path)), OTHER, state=None)
    write_owner(other, "supervisor")
    with pytest.raises(RunDirError, match="swift-hare, not over yet"):
        delete_run(root, run)
