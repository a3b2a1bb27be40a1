"""Which half of a run is silent, and for how long."""

from __future__ import annotations

import os
import time

import pytest

from ringside import identity
from ringside.hang import Hang, Standstill
from ringside.life import OWNER_SILENT_S, TRAINER_SILENT_S, sign_of_life
from ringside.marks import ACTIVITIES, LAYOUT, MAGIC, PHASES
from ringside.records import Owner
from ringside.run import fold_run

RUN = "20260101-000000-calm-fox"
NOW = 5000.0


@pytest.fixture
def heard(make_spec, write_run):
    """The sign of life of a run whose newest event is of 1003.5, by what else there is."""
    run = write_run(make_spec(), RUN, state=None)
    run.ranks.mkdir()

    def of(*, kind="supervisor", touched=NOW - 3, marks=(), hangs=False):
        owner = Owner(kind=kind, process=identity.of(os.getpid()), started=1000.0)
        run.write(run.owner, owner)
        os.utime(run.owner, (touched, touched))
        for rank, (phase, activity, t) in enumerate(marks):
            data = LAYOUT.pack(MAGIC, rank, 1, PHASES.index(phase), ACTIVITIES.index(activity),
                               1, 1, 1, t)  # fmt: skip
            (run.ranks / f"rank{rank}.mark").write_bytes(data)
        if hangs:
            now = Standstill(since=NOW - 30, limit_s=20, step=1, epoch=1, marks=())
            run.write(run.hang, Hang(now=now))
        return sign_of_life(fold_run(run), NOW)

    return of


def test_the_newest_of_event_and_marks_counts(heard):
    assert heard().trainer_s == NOW - 1003.5
    marks = (("train", "data", NOW - 7.0), ("train", "backward", NOW - 2.0))
    found = heard(marks=marks)
    assert (found.trainer_s, found.supervisor_s, found.silent) == (2.0, 3.0, ())
    assert (found.phase, found.activity) == ("train", "backward")


def test_a_trainer_that_hangs_is_silent(heard):
    marks = (("train", "data", NOW - 30),)
    assert heard(marks=marks).silent == ()
    assert heard(marks=marks, hangs=True).silent == ("trainer",)


def test_a_silent_supervisor_is_told_from_a_silent_trainer(heard):
    moving = (("train", "data", NOW - 1),)
    late = NOW - OWNER_SILENT_S - 1
    assert heard(marks=moving, touched=late).silent == ("supervisor",)
    still = (("train", "data", NOW - TRAINER_SILENT_S - 1),)
    assert heard(marks=still, touched=late).silent == ("trainer", "supervisor")


def test_long_steps_are_no_silence_while_somebody_watches_them(heard):
    """Steps of minutes: the supervisor, which knows how long they take, sees no standstill."""
    still = (("train", "backward", NOW - TRAINER_SILENT_S - 60),)
    assert heard(marks=still).silent == ()
    assert heard(marks=still, hangs=True).silent == ("trainer",)
    assert heard(kind="terminal", marks=still).silent == ("trainer",)


@pytest.mark.parametrize("phase", ["setup", "compile", "evaluate", "save"])
def test_a_phase_that_takes_its_time_is_no_silence(heard, phase):
    assert heard(marks=((phase, "begin", NOW - 900),)).silent == ()


def test_in_a_terminal_nobody_touches_the_owner_s_file(heard):
    assert heard(kind="terminal", touched=1.0).supervisor_s is None


def test_a_run_that_is_over_has_no_sign_of_life(make_spec, write_run):
    record = fold_run(write_run(make_spec(), RUN))
    assert sign_of_life(record, time.time()).trainer_s is None
