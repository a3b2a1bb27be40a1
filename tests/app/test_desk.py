"""What the server keeps of the runs."""

from __future__ import annotations

import threading

import pytest

from app.views.desk import Desk
from ringside.errors import RunDirError
from ringside.run import fold_run


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


def test_a_baseline_needs_none(runs, runs_root):
    spec = fold_run(runs.add("base-bison", preset="single")).spec
    assert Desk(runs_root).baseline_state(spec).kind == "itself"


def test_a_baseline_that_ends_later_is_found(runs, runs_root):
    run = runs.add("fast-finch", epochs=2)
    desk = Desk(runs_root)
    assert desk.look(run.id)[0].tiles[2].value == "–"
    runs.add("base-bison", preset="single", epochs=2, epoch_time_s=3.0, ended="completed")
    assert desk.look(run.id)[0].tiles[2].value == "1.50×"


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
