"""The curves of a run: thinned without losing a spike, sent in increments that add up."""

from __future__ import annotations

import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.views.desk import Desk
from app.views.series import Line, Spot, quantiles
from ringside import events as ev


class Browser:
    """What `curves.js` does with an increment."""

    def __init__(self):
        self.points, self.cursor = [], None

    def take(self, news):
        if news is not None:
            self.cursor, place, spots = news
            assert place <= len(self.points)
            self.points[place:] = spots


def spots(values):
    return [Spot(step, step / 10, value) for step, value in enumerate(values, start=1)]


@settings(deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
)
def test_increments_add_up_to_the_line(values, pauses):
    line, browser = Line(limit=24), Browser()
    pauses = list(pauses)
    wait = pauses.pop()
    for spot in spots(values):
        line.add(spot)
        wait -= 1
        if not wait:
            browser.take(line.since(browser.cursor))
            assert browser.points == line.spots()
            wait = pauses.pop() if pauses else 7
    browser.take(line.since(browser.cursor))
    assert browser.points == line.spots()
    assert line.since(browser.cursor) is None
    assert len(browser.points) <= 24
    assert browser.points[-1] == spots(values)[-1]
    assert [s.step for s in browser.points] == sorted(s.step for s in browser.points)


def test_no_spike_is_lost_and_the_bound_holds():
    source = random.Random(0)
    values = [1.0 + source.random() for _ in range(100_000)]
    values[31_337], values[77_777] = 50.0, -3.0
    line = Line(limit=2000)
    for spot in spots(values):
        line.add(spot)
    kept = [spot.value for spot in line.spots()]
    assert 900 < len(kept) <= 2000
    assert max(kept) == 50.0
    assert min(kept) == -3.0


def test_the_newest_is_shown_when_it_is_neither_the_lowest_nor_the_highest():
    line, browser = Line(limit=8), Browser()
    for spot in spots([1.0, 9.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0]):
        line.add(spot)
        browser.take(line.since(browser.cursor))
        assert browser.points[-1] == spot
    assert browser.points == line.spots()


def test_an_answer_that_was_lost_is_sent_again():
    line, browser = Line(), Browser()
    for spot in spots([3.0, 2.0]):
        line.add(spot)
    browser.take(line.since(browser.cursor))
    line.add(Spot(3, 0.3, 1.0))
    lost = line.since(browser.cursor)
    assert line.since(browser.cursor) == lost
    browser.take(lost)
    assert browser.points == line.spots()


@pytest.mark.parametrize(
    "cursor", [None, [], [1, 99, 99, 99], ["x", 0, 0, 0], {"a": 1}, [1, -1, 0, 0]]
)
def test_a_cursor_of_no_sense_gets_all(cursor):
    line = Line()
    line.add(Spot(1, 0.1, 5.0))
    assert line.since(cursor)[1:] == (0, [Spot(1, 0.1, 5.0)])


def test_what_is_not_finite_is_left_out():
    line = Line()
    for value in (float("nan"), 1.0, float("inf")):
        line.add(Spot(1, 0.1, value))
    assert [spot.value for spot in line.spots()] == [1.0]


def test_quantiles_are_those_of_numpy():
    import numpy as np

    source = random.Random(1)
    values = [source.gauss(40, 5) for _ in range(777)]
    assert quantiles(values) == pytest.approx(np.percentile(values, [50, 95]))
    assert quantiles([3.0]) == (3.0, 3.0)


def test_the_lines_of_a_run(runs, runs_root):
    run = runs.add("calm-crane", epochs=2)
    desk = Desk(runs_root)
    desk.look(run.id)
    cursors, found = desk.curves(run.id, {})
    assert found["train_loss"]["points"] == [[10, 1.0, 0.5], [20, 3.0, 0.25]]
    assert found["auc"]["points"] == [[10, 2.0, 0.8], [20, 4.0, 0.8]]
    assert found["map"]["points"][0][2] == 0.5
    assert found["step_p95"]["points"] == [[10, 2.0, 100.0], [20, 4.0, 100.0]]
    assert desk.curves(run.id, cursors) == (cursors, {})
    writer = ev.EventWriter(run.events)
    writer.write(
        ev.WindowTimed(
            epoch=3, step=25, num_steps=5, samples_per_s=300.0, train_loss=0.2, learning_rate=0.001,
            step_ms=100.0, data_ms=5.0, forward_ms=25.0, backward_ms=50.0, optimizer_ms=15.0,
            step_ms_min=99.0, data_ms_min=4.0,
        )
    )  # fmt: skip
    writer.close()
    desk.look(run.id)
    _, found = desk.curves(run.id, cursors)
    assert set(found) == {"train_loss", "rate", "step_ms", "learning_rate"}
    assert found["train_loss"] == {"at": 2, "points": [[25, 4.5, 0.2]]}


def test_a_new_server_sends_the_same_to_an_old_cursor(runs, runs_root):
    run = runs.add("same-seal", epochs=3)
    answers = []
    for _ in range(2):
        desk = Desk(runs_root)
        desk.look(run.id)
        answers.append(desk.curves(run.id, {}))
    assert answers[0] == answers[1]


def test_steps_that_were_recorded_count_in_no_percentile(runs, runs_root):
    run = runs.add("slow-swan", epochs=1)
    text = run.events.read_text().replace('"step_ms":100.0', '"step_ms":900.0,"profiled":true')
    run.events.write_text(text)
    desk = Desk(runs_root)
    desk.look(run.id)
    found = desk.curves(run.id, {})[1]
    assert "step_p50" not in found
    assert statistics.mean(p[2] for p in found["step_ms"]["points"]) == 900.0


@given(st.lists(st.lists(st.floats(-9, 9) | st.none(), max_size=90), min_size=1, max_size=12))
def test_many_at_once_are_as_one_by_one(batches):
    at_once, one_by_one = Line(limit=24), Line(limit=24)
    step = 0
    for batch in batches:
        steps = list(range(step + 1, step + 1 + len(batch)))
        step += len(batch)
        times = [number / 10 for number in steps]
        at_once.extend(steps, times, batch)
        for number, time_s, value in zip(steps, times, batch, strict=True):
            one_by_one.extend([number], [time_s], [value])
        assert at_once.spots() == one_by_one.spots()
        assert at_once.since(None) == one_by_one.since(None)
