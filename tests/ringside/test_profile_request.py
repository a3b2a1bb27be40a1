"""Asking a run to record its next steps."""

from __future__ import annotations

import pytest

from ringside.errors import RunDirError, SpecError
from ringside.hardware import read_hardware
from ringside.profile_request import ask_for_profile, asked_steps
from ringside.records import write_exit
from ringside.request import RunRequest, resolve


@pytest.fixture
def run(tmp_path, make_spec):
    from ringside.rundir import create_run_dir

    made = create_run_dir(tmp_path)
    made.write(made.spec, make_spec("single"))
    return made


def test_the_newer_wish_counts(run):
    assert asked_steps(run) == 5
    ask_for_profile(run, 7)
    ask_for_profile(run, 9)
    assert run.requested("profile")
    assert asked_steps(run) == 9


@pytest.mark.parametrize("num_steps", [0, -1, 51])
def test_a_number_out_of_range_is_refused(run, num_steps):
    with pytest.raises(SpecError, match=f"1 to 50 steps.* not {num_steps}"):
        ask_for_profile(run, num_steps)
    assert not run.requested("profile")


def test_a_run_that_is_over_says_how_to_get_traces(run):
    write_exit(run, state="completed", return_code=0, reason="Completed.")
    with pytest.raises(RunDirError, match=r"is over \(completed\).*--profile 5"):
        ask_for_profile(run)


@pytest.mark.parametrize("text", ["", "[]", '{"steps": 51}', '{"steps": "9"}', '{"steps": 1e99}'])
def test_a_damaged_wish_is_one_for_the_usual_number(run, text):
    (run.requests / "profile.json").write_text(text)
    assert asked_steps(run) == 5


@pytest.mark.parametrize("asked", [-1, 51])
def test_a_run_records_at_most_fifty_steps_at_its_end(asked):
    with pytest.raises(SpecError, match=f"^0 to 50 steps can be profiled, not {asked}"):
        resolve(RunRequest(preset="single", profile=asked), read_hardware())


def test_what_is_recorded_at_the_end_is_part_of_the_spec():
    spec = resolve(RunRequest(preset="single", data="emoji", profile=4), read_hardware())
    assert (spec.profile_steps, spec.sources["profile_steps"]) == (4, "flag")


def test_the_handicap_of_ddp_is_refused_where_nothing_reads_it(make_spec):
    assert make_spec("ddp", training={"find_unused_parameters": True}).training
    with pytest.raises(SpecError, match=r"find_unused_parameters needs DDP.* single"):
        make_spec("single", training={"find_unused_parameters": True})
