"""How often pages ask: as often as people like, until training would pay for it."""

from __future__ import annotations

import os

from app.views.pace import ANSWERS_PER_S, FORGET_S, LOOK_S, MAX_PERIOD_S, Pace, free_cores


class Machine:
    """A machine whose free cores and clock are set by the test."""

    def __init__(self) -> None:
        self.free, self.now = 4.0, 100.0
        self.pace = Pace(lambda: self.free, lambda: self.now)

    def ask(self, num_viewers: int) -> list[float | None]:
        """What the page of each viewer is told; each asks once, when the cores were looked at."""
        self.now += LOOK_S
        return [self.pace.news(f"viewer {number}") for number in range(num_viewers)]


def test_while_a_core_is_free_every_page_asks_each_second():
    machine = Machine()
    assert machine.ask(50) == [1.0] * 50
    assert machine.ask(50) == [None] * 50, "it has been told"


def test_without_a_free_core_all_pages_share_a_few_answers():
    machine = Machine()
    machine.ask(20)
    machine.free = 0.1
    assert machine.ask(20) == [20 / ANSWERS_PER_S] * 20
    assert machine.ask(20) == [None] * 20
    machine.free = 1.0
    assert machine.ask(20) == [1.0] * 20


def test_pages_that_ask_less_do_not_take_what_they_leave_for_a_free_core():
    machine = Machine()
    machine.ask(20)
    machine.free = 0.4
    assert machine.ask(20) == [4.0] * 20
    machine.free = 0.7
    assert machine.ask(20) == [None] * 20
    machine.free = 0.9
    assert machine.ask(20) == [1.0] * 20
    machine.free = 0.7
    assert machine.ask(20) == [None] * 20


def test_few_viewers_are_never_slowed_down_and_many_never_for_long():
    machine = Machine()
    machine.free = 0.0
    assert machine.ask(ANSWERS_PER_S) == [1.0] * ANSWERS_PER_S
    assert machine.ask(1000)[-1] == MAX_PERIOD_S


def test_closed_pages_no_longer_count_and_one_that_comes_back_is_told_again():
    machine = Machine()
    machine.free = 0.0
    machine.ask(20)
    machine.ask(20)
    machine.now += FORGET_S
    assert machine.ask(3) == [1.0] * 3
    machine.free = 1.0
    assert machine.ask(4)[3] == 1.0, "its timer still runs as slowly as it was told last"


def test_free_cores_are_those_of_this_machine():
    free_cores()
    assert 0 <= free_cores() <= (os.cpu_count() or 1)
