"""The list as the page shows it: notes, figures, what is found, and how long it takes."""

from __future__ import annotations

import shutil
import time

import pytest

from app.page.draw.listing import leftover_card, run_list, said_about
from app.views import listing
from app.views.desk import Desk
from app.views.leftovers import LeftoverState, LeftoverWatch
from app.views.listing import MAX_SHOWN, find, num_measured_against, presets_of, tags_of
from ringside.identity import wait_until
from ringside.shelf.finding import Query
from ringside.shelf.leftovers import Leftover
from ringside.shelf.notes import Notes, edit_notes

EVIL = "<script>x</script>"


@pytest.fixture
def story(runs):
    """A baseline, a run twice as fast, and one under way."""
    base = runs.add("base-bison", preset="single", epochs=3, auc=0.7, ended="completed")
    fast = runs.add("fast-finch", epochs=3, epoch_time_s=1.0, auc=0.6, ended="completed")
    live = runs.add("live-lark", epochs=2, epoch_time_s=4.0, auc=0.9)
    return base, fast, live


def test_rows_have_figures_and_what_is_said(story, runs_root):
    base, fast, live = story
    desk = Desk(runs_root)
    rows = {row.id: row for row in desk.rows()}
    assert rows[fast.id].figures.speedup == pytest.approx(2.0)
    assert rows[fast.id].figures.baseline_id == base.id
    assert rows[live.id].figures.speedup == pytest.approx(0.5)
    assert num_measured_against(rows.values(), base.id) == 2
    edit_notes(fast, add=["best"], note="keep")
    edit_notes(live, add=["Best", "sockets"])
    rows = desk.rows()
    assert [row.notes.tags for row in rows] == [("Best", "sockets"), ("best",), ()]
    assert tags_of(rows) == ["Best", "sockets"]
    assert presets_of(rows) == ["ddp", "single"]


def test_without_its_baseline_a_run_has_no_speedup(story, runs_root):
    base, fast, _ = story
    desk = Desk(runs_root)
    desk.rows()
    shutil.rmtree(base.path)
    rows = {row.id: row for row in desk.rows()}
    assert base.id not in rows
    assert rows[fast.id].figures.speedup is None


def test_found_in_order(story, runs_root):
    base, fast, live = story
    rows = Desk(runs_root).rows()
    assert [row.id for row in find(rows, Query(sort="speedup")).rows] == [fast.id, live.id, base.id]
    assert [row.id for row in find(rows, Query(sort="auc")).rows] == [live.id, base.id, fast.id]
    found = find(rows, Query(search="ddp"))
    assert (found.num_found, found.num_runs) == (2, 3)


def test_a_long_list_says_how_much_is_not_shown(story, runs_root, monkeypatch):
    monkeypatch.setattr(listing, "MAX_SHOWN", 2)
    html = run_list(find(Desk(runs_root).rows(), Query()), None)
    assert "2 of 3 runs" in html
    assert html.count("<tr>") == 1 + 2


def test_nothing_found_says_what_to_do(story, runs_root):
    rows = Desk(runs_root).rows()
    assert "Take a word or a filter away" in run_list(find(rows, Query(search="nope")), None)
    assert "No run has been archived" in run_list(find(rows, Query(archived=True)), None)
    assert "Go to Train" in run_list(find([], Query()), None)


def test_what_people_and_processes_say_is_escaped(story, runs_root):
    notes = Notes(tags=(EVIL,), note=f"{EVIL}\n{EVIL}", archived=True)
    story[0].write(story[0].notes, notes)
    html = run_list(find(Desk(runs_root).rows(), Query(archived=True)), EVIL)
    process = Leftover(run=f"20260101-000000-{EVIL}", state="lost", pid=1, command=EVIL * 100)
    html += said_about(notes) + leftover_card(LeftoverState((process,), sentence=EVIL))
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 6


def test_two_hundred_runs_are_listed_in_milliseconds(runs, runs_root):
    for number in range(200):
        name = f"calm-crane-{number}"
        runs.made = 0  # the id's second would run over
        preset = "ddp" if number % 4 else "single"
        runs.add(name, preset=preset, epochs=3, ended="completed", seed=number % 7)
    edit_notes(Desk(runs_root).find("calm-crane-9"), add=["best"])
    desk = Desk(runs_root)
    desk.rows()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        html = run_list(find(desk.rows(), Query(sort="speedup")), None)
        times.append(time.perf_counter() - begin)
    assert html.count("<tr>") == 1 + MAX_SHOWN
    assert min(times) < 0.15


def wait_for(watch, wanted):
    """Looking is in the background; the next question gets the answer."""
    return wait_until(lambda: wanted(watch.state), 10)


def test_leftovers_are_looked_for_behind_the_viewer_s_back(tmp_path, monkeypatch):
    from app.views import leftovers

    one = Leftover(run="20260101-000000-calm-fox", state="lost", pid=7, command="x")
    looks, there = [], [one]
    monkeypatch.setattr(leftovers, "find_leftovers", lambda root: looks.append(root) or there)
    monkeypatch.setattr(leftovers, "end_leftovers", lambda root: there.clear() or [])
    watch = LeftoverWatch(tmp_path)
    assert watch.state.found == ()
    assert wait_for(watch, lambda state: state.found == (one,))
    assert [watch.state.found for _ in range(50)] == [(one,)] * 50
    assert len(looks) == 1
    watch.clean()
    assert wait_for(watch, lambda state: not state.cleaning and state.found == ())


def test_what_could_not_be_ended_is_told(tmp_path, monkeypatch):
    from app.views import leftovers

    one = Leftover(run="20260101-000000-calm-fox", state="lost", pid=77, command="x")
    monkeypatch.setattr(leftovers, "find_leftovers", lambda root: [one])
    monkeypatch.setattr(leftovers, "end_leftovers", lambda root: [one])
    watch = LeftoverWatch(tmp_path)
    watch.clean()
    assert wait_for(watch, lambda state: not state.cleaning)
    assert "Could not be ended: 77" in watch.state.sentence
    assert "Could not be ended: 77" in leftover_card(watch.state)
