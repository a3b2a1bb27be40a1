"""Asking a run to record its next steps."""

from __future__ import annotations

import pytest

from ringside.errors import RunDirError, SpecError
from ringside.profile_request import ask_for_profile, asked_steps
from ringside.records import write_exit


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
