"""One run as the page shows it, in every state."""

from __future__ import annotations

import time

import pytest

from app.views.desk import Desk
from app.views.run import thinned
from app.views.series import MAX_POINTS
from ringside import events as ev
from ringside.errors import RunDirError


def look(desk, run):
    return desk.look(run.id)[0]


def test_before_the_first_epoch_everything_is_a_dash(runs, runs_root):
    view, life = Desk(runs_root).look(runs.add("calm-owl").id)
    assert view.state == "launching"
    assert [tile.value for tile in view.tiles] == ["–"] * 6
    assert view.epochs == ()
    assert view.step is None
    assert view.stoppable
    assert life.sentence(time.time()) == "last sign of life 0 s ago"


def test_running_with_a_baseline(runs, runs_root):
    runs.add("base-owl", preset="single", epochs=3, epoch_time_s=4.0, ended="completed")
    view = look(Desk(runs_root), runs.add("fast-fox", epochs=2, epoch_time_s=2.0))
    values = [tile.value for tile in view.tiles]
    assert values[:5] == ["2.00 s", "320", "2.00×", "0.800", "0.500"]
    assert "weak scaling" in view.tiles[2].label
    assert view.tiles[2].tone == "good"
    assert "15 of 16 classes" in view.tiles[3].label
    assert [row[3] for row in view.epochs] == ["warm-up", "2.00×"]
    assert view.facts == ("ddp", "resnet10t", "products:ci", "epoch 2 of 3")


def test_slower_than_one_device_is_marked(runs, runs_root):
    runs.add("base-owl", preset="single", epochs=2, epoch_time_s=2.0, ended="completed")
    view = look(Desk(runs_root), runs.add("slow-fox", epochs=2, epoch_time_s=2.8))
    assert (view.tiles[2].value, view.tiles[2].tone) == ("0.71×", "bad")


def test_no_speedup_has_a_reason(runs, runs_root):
    view = look(Desk(runs_root), runs.add("lone-fox", epochs=2))
    assert view.tiles[2].value == "–"
    assert "no baseline" in view.tiles[2].label


def test_first_epoch_is_called_warm_up(runs, runs_root):
    runs.add("base-owl", preset="single", epochs=2, ended="completed")
    view = look(Desk(runs_root), runs.add("new-fox", epochs=1))
    assert "warm-up" in view.tiles[0].label
    assert "warm-up" in view.tiles[2].label


def test_a_loss_that_was_not_finite_is_a_dash(runs, runs_root):
    run = runs.add("nan-newt", epochs=1)
    writer = ev.EventWriter(run.events)
    writer.write(
        ev.EpochTrained(
            epoch=2, epoch_time_s=2.0, num_samples=640, samples_per_s=320.0, num_optimizer_steps=10,
            train_loss=float("nan"), epoch_time_s_min=2.0,
        )
    )  # fmt: skip
    writer.close()
    assert look(Desk(runs_root), run).epochs[1][4:] == ("–", "–", "–")


def test_a_failure_names_rank_and_keeps_the_traceback(runs, runs_root, failing):
    run = runs.add("sad-swan", epochs=1)
    failing(run, "CUDA ran out of memory.")
    view = look(Desk(runs_root), run)
    assert view.ending is not None
    assert view.ending.bad
    assert view.ending.title == "Failed on rank 1"
    assert view.ending.sentence == "CUDA ran out of memory."
    assert "Traceback" in (view.ending.traceback or "")
    assert not view.stoppable


def test_what_a_person_can_mend_comes_without_traceback(runs, runs_root, failing):
    run = runs.add("odd-owl")
    failing(run, "There is no folder /data.", user_error=True)
    ending = look(Desk(runs_root), run).ending
    assert ending is not None
    assert ending.traceback is None


@pytest.mark.parametrize(("state", "bad"), [("stopped", False), ("lost", True)])
def test_other_endings_give_their_reason(runs, runs_root, state, bad):
    view = look(Desk(runs_root), runs.add("end-eel", epochs=1, ended=state))
    assert view.ending is not None
    assert view.ending.sentence == f"It is {state}."
    assert view.ending.bad is bad
    assert view.facts[-1] == "1 of 3 epochs"


def test_a_stop_that_was_asked_for_is_shown(runs, runs_root):
    run = runs.add("stop-stork", epochs=1)
    run.request("stop")
    view = look(Desk(runs_root), run)
    assert view.state == "stopping"
    assert not view.stoppable


def test_completed_has_total_time_and_no_ending(runs, runs_root):
    view, life = Desk(runs_root).look(runs.add("done-dove", epochs=3, ended="completed").id)
    assert view.ending is None
    assert view.tiles[-1].label == "total time"
    assert life.sentence(time.time()).startswith("ended")


def test_set_up_tells_what_was_asked_and_what_ran(runs, runs_root):
    setup = dict(look(Desk(runs_root), runs.add("set-seal", epochs=1)).setup)
    assert setup["asked for"].startswith("2 processes on CPU")
    assert setup["really ran"] == "2 × x86_64, DDP, fp32, backend gloo"
    assert setup["reduced per step and rank"] == "19.7 MB"


def test_thinning_keeps_first_and_last():
    points = list(range(100_000))
    kept = thinned(points, MAX_POINTS)
    assert len(kept) == MAX_POINTS
    assert (kept[0], kept[-1]) == (0, 99_999)
    assert thinned([1, 2], 10) == [1, 2]


def test_a_long_run_stays_quick_and_small(runs, runs_root):
    run = runs.add("long-lynx", epochs=1)
    line = next(x for x in run.events.read_bytes().splitlines() if b"window_timed" in x)
    with run.events.open("ab") as stream:
        stream.write((line + b"\n") * 100_000)
    desk = Desk(runs_root)
    desk.look(run.id)
    began = time.perf_counter()
    desk.look(run.id)
    assert time.perf_counter() - began < 0.05
    _, curves = desk.curves(run.id, {})
    assert 0 < len(curves["rate"]["points"]) <= MAX_POINTS


def test_every_line_of_a_long_run_is_read_once(runs, runs_root, monkeypatch):
    run = runs.add("long-lynx", epochs=1)
    lines = run.events.read_bytes().splitlines(keepends=True)
    window = next(line for line in lines if b"window_timed" in line)
    with run.events.open("ab") as stream:
        stream.write(window * 10_000)
    sizes = []
    decode = ev.decode_lines
    monkeypatch.setattr(ev, "decode_lines", lambda data: sizes.append(len(data)) or decode(data))
    desk = Desk(runs_root)
    for _ in range(3):
        assert desk.rows()[0].state == "running"
        desk.look(run.id)
    assert sum(sizes) == run.events.stat().st_size
    with run.events.open("ab") as stream:
        stream.write(window)
    desk.rows()
    assert sizes[1:] == [len(window)]


def test_a_spec_of_a_newer_ringside_is_refused_in_a_sentence(runs, runs_root):
    run = runs.add("new-newt")
    run.spec.write_bytes(run.spec.read_bytes().replace(b'"format": 1', b'"format": 99'))
    with pytest.raises(RunDirError, match="update Ringside"):
        Desk(runs_root).look(run.id)
