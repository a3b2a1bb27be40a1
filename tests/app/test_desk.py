"""What the server keeps of the runs."""

from __future__ import annotations

import threading

import msgspec
import pytest

from app.views import desk as desk_module
from app.views.desk import Desk
from ringside.errors import LaunchError, RunDirError
from ringside.identity import ProcessIdentity, boot_id, wait_until
from ringside.records import read_exit, read_owner
from ringside.run import fold_run

GONE = ProcessIdentity(pid=2**22 + 1, create_time=1.0, boot_id=boot_id())


def abandon(run):
    """Its owner was killed and left no word."""
    run.write(run.owner, msgspec.structs.replace(read_owner(run), process=GONE))
    return run


@pytest.fixture
def reconciled(monkeypatch):
    """The runs that were handed over, without anything being done about them."""
    runs = []
    monkeypatch.setattr(desk_module, "reconcile", lambda run: runs.append(run.id))
    return runs


def test_no_runs(runs_root):
    assert Desk(runs_root).rows() == []
    assert Desk(runs_root).find(None) is None
    assert Desk(runs_root / "absent").rows() == []


def test_rows_are_newest_first_and_skip_what_is_no_run(runs, runs_root):
    runs.add("old-owl", epochs=3, ended="completed")
    runs.add("new-newt", preset="single")
    (runs_root / "20260102-030499-half-hare").mkdir()
    (runs_root / "notes").mkdir()
    rows = Desk(runs_root).rows()
    assert [(row.name, row.state) for row in rows] == [
        ("new-newt", "launching"),
        ("old-owl", "completed"),
    ]
    assert rows[1].progress == "3 of 3 epochs"


def test_find_takes_id_words_or_the_newest(runs, runs_root):
    old, new = runs.add("old-owl"), runs.add("new-newt")
    desk = Desk(runs_root)
    assert desk.find(None).id == new.id
    assert desk.find("old-owl").id == old.id
    with pytest.raises(RunDirError):
        desk.find("../../etc")


def test_a_view_is_made_again_only_when_something_changed(runs, runs_root, failing):
    run = runs.add("calm-crane", epochs=1)
    desk = Desk(runs_root)
    first = desk.look(run.id)[0]
    assert desk.look(run.id)[0].epochs is first.epochs
    failing(run, "It broke.")
    assert desk.look(run.id)[0].state == "failed"


def test_a_new_server_folds_the_same(runs, runs_root):
    run = runs.add("same-seal", epochs=2)
    assert Desk(runs_root).look(run.id)[0] == Desk(runs_root).look(run.id)[0]


@pytest.mark.parametrize(
    ("preset", "ended", "expected"),
    [
        ("single", "completed", "measured"),
        ("single", None, "measuring"),
        ("fsdp", "completed", "none"),
    ],
)
def test_state_of_the_baseline(runs, runs_root, preset, ended, expected):
    epochs = 2 if ended else 0
    other = runs.add("base-bison", preset=preset, epochs=epochs, ended=ended)
    spec = fold_run(runs.add("fast-finch")).spec
    state = Desk(runs_root).baseline_state(spec)
    assert state.kind == expected
    assert state.run_id == (other.id if expected != "none" else None)


@pytest.mark.parametrize("how", ["lost", "failed", "stopping"])
def test_a_baseline_that_will_never_end_well_is_not_measuring(
    runs, runs_root, failing, reconciled, how
):
    base = runs.add("base-bison", preset="single", epochs=1)
    if how == "stopping":
        base.request("stop")
    else:
        abandon(base)
    if how == "failed":
        failing(base, "It broke.")
        base.exit.unlink()
    desk = Desk(runs_root)
    spec = fold_run(runs.add("fast-finch")).spec
    assert desk.baseline_state(spec).kind == "none"


def test_a_run_whose_owner_is_gone_is_closed_while_the_page_is_open(runs, runs_root):
    run = abandon(runs.add("left-lark", epochs=1))
    desk = Desk(runs_root)
    assert desk.rows()[0].state == "lost"
    assert wait_until(run.exit.exists, 10)
    assert read_exit(run).state == "lost"
    assert desk.rows()[0].state == "lost"


def test_many_looks_close_an_abandoned_run_once(runs, runs_root, reconciled, monkeypatch):
    run = abandon(runs.add("left-lark", epochs=1))
    alive = runs.add("live-lynx", epochs=1)
    desk = Desk(runs_root)
    for _ in range(3):
        desk.rows()
        desk.look(run.id)
        desk.look(alive.id)
    assert wait_until(lambda: bool(reconciled), 5)
    assert reconciled == [run.id]
    monkeypatch.setattr(desk_module, "RECONCILE_PAUSE_S", 0.0)
    desk.rows()
    assert wait_until(lambda: len(reconciled) == 2, 5)


def test_a_run_that_nobody_took_is_closed(runs, runs_root, reconciled, monkeypatch):
    run = runs.add("none-newt")
    run.owner.unlink()
    desk = Desk(runs_root)
    desk.rows()
    monkeypatch.setattr(desk_module, "NEVER_STARTED_S", 0.0)
    desk.rows()
    assert wait_until(lambda: reconciled == [run.id], 5)


def test_a_run_that_cannot_be_closed_is_still_shown(runs, runs_root, monkeypatch, caplog):
    def refuse(run):
        raise LaunchError("Another Ringside has held it.")

    monkeypatch.setattr(desk_module, "reconcile", refuse)
    abandon(runs.add("left-lark", epochs=1))
    desk = Desk(runs_root)
    assert desk.rows()[0].state == "lost"
    assert wait_until(lambda: "Another Ringside" in caplog.text, 5)


def test_a_baseline_needs_none(runs, runs_root):
    spec = fold_run(runs.add("base-bison", preset="single")).spec
    assert Desk(runs_root).baseline_state(spec).kind == "itself"


def test_a_baseline_that_ends_later_is_found(runs, runs_root):
    run = runs.add("fast-finch", epochs=2)
    desk = Desk(runs_root)
    assert desk.look(run.id)[0].tiles[2].value == "–"
    runs.add("base-bison", preset="single", epochs=2, epoch_time_s=3.0, ended="completed")
    assert desk.look(run.id)[0].tiles[2].value == "1.50×"


def test_a_baseline_of_other_data_is_found_out_when_the_run_starts(runs, runs_root):
    """A launching run does not know its data yet, so the baseline fits; started, it does not."""
    runs.add("base-bison", preset="single", epochs=2, ended="completed")
    run = runs.add("fast-finch")
    desk = Desk(runs_root)
    assert desk.baseline_id(run.id) is not None
    started = runs.add("twin-tern", epochs=2).events.read_bytes()
    run.events.write_bytes(started.replace(b'"same"', b'"other"'))
    assert desk.baseline_id(run.id) is None


def test_the_newest_is_a_whole_run(runs, runs_root):
    whole = runs.add("whole-wren")
    runs.add("half-hare").spec.unlink()
    assert Desk(runs_root).find(None).id == whole.id


@pytest.mark.parametrize(
    "text", ["", None, "last", "lone-lynx", "lone", "20260102", "../etc", "\0"]
)
def test_only_the_whole_id_is_exact(runs, runs_root, text):
    run = runs.add("lone-lynx")
    desk = Desk(runs_root)
    assert desk.exact(text) is None
    assert desk.exact(run.id).path == run.path


def test_readers_of_ended_runs_are_let_go_and_others_kept(runs, runs_root, monkeypatch):
    monkeypatch.setattr(desk_module, "MAX_READERS", 2)
    going = [runs.add(f"go-{word}").id for word in ("ant", "bee", "cat")]
    ended = [runs.add(f"end-{word}", epochs=1, ended="completed") for word in ("ant", "bee", "cat")]
    desk = Desk(runs_root)
    desk.rows()
    assert set(desk._watched) == set(going)
    for run in ended:
        desk.look(run.id)
    desk.look(runs.add("go-dog").id)
    assert set(going) < set(desk._watched)
    assert [run.id for run in ended if run.id in desk._watched] == [run.id for run in ended[1:]]


def test_many_viewers_at_once(runs, runs_root):
    run = runs.add("busy-beaver", epochs=3)
    desk, seen = Desk(runs_root), []

    def view() -> None:
        for _ in range(20):
            seen.append(len(desk.look(run.id)[0].epochs))

    threads = [threading.Thread(target=view) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [3] * 200
