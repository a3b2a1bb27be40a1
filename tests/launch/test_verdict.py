"""Which state and which sentence follow from the files that a run leaves."""

from __future__ import annotations

import pytest

from ringside.events import EventWriter, PhaseStarted, RunFinished, StopAgreed
from ringside.identity import ProcessIdentity
from ringside.launch.evidence import Resumable, advice
from ringside.launch.inquest import Finding
from ringside.launch.verdict import judge
from ringside.records import Standing

ELASTIC = """
Failures:
[1]:
  rank      : 0 (local_rank: 0)
  exitcode  : {other} (pid: 6129)  (SIGTERM)
------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_17:32:37
  rank      : 1 (local_rank: 1)
  exitcode  : {root} (pid: 6130)
"""


def rank_error(run, rank, t, sentence, user_error=False):
    content = {"rank": rank, "t": t, "sentence": sentence, "traceback": None}
    run.write(run.ranks / f"rank{rank}.error.json", content | {"user_error": user_error})


@pytest.fixture
def run(make_run):
    return make_run("")


@pytest.mark.parametrize(
    ("cause", "is_own", "says_resume"),
    [("files", False, False), ("setup", False, False), ("setup", True, True),
     ("data", False, True), ("killed", False, True)],
)  # fmt: skip
def test_the_checkpoint_that_was_refused_is_not_advised_again(cause, is_own, says_resume):
    found = Resumable(Standing(path="checkpoints/last", epoch=1, step=9), "calm-fox", is_own)
    said = advice(found, Finding(cause, 0, "It was refused.", mistake=True), None)
    assert ("ringside resume calm-fox" in said) == says_resume


def test_the_trainers_word_beats_a_late_stop_request(run):
    run.request("stop")
    assert judge(run, 0).state == "stopped"
    EventWriter(run.events).write(RunFinished(reason="completed", total_time_s=1.0))
    assert judge(run, 0).state == "completed"


@pytest.mark.parametrize(("code", "forced"), [(1, False), (-6, False), (-15, True)])
def test_a_profile_that_dies_after_a_finished_run_is_no_failure(run, code, forced):
    events = EventWriter(run.events)
    events.write(RunFinished(reason="completed", total_time_s=1.0))
    assert judge(run, code, forced=forced).state != "completed"
    events.write(PhaseStarted(phase="profile", epoch=1))
    rank_error(run, 1, 1.0, "The GPU ran out of memory.")
    verdict = judge(run, code, forced=forced)
    assert verdict.state == "completed"
    assert verdict.reason == "Completed; the profile after training did not come to its end."
    assert judge(run, 0).reason == "Completed."


def test_an_agreed_stop_of_another_kind_is_stopped(run):
    EventWriter(run.events).write(StopAgreed(request="stop-after-epoch", epoch=1, step=3))
    assert judge(run, 0).state == "stopped"


def test_an_error_during_a_requested_stop_stays_a_failure(run):
    run.request("stop")
    rank_error(run, 0, 1.0, "OSError: No space left on device")
    verdict = judge(run, 1)
    assert verdict.state == "failed"
    assert verdict.reason == "Rank 0: OSError: No space left on device"


def test_never_stopped_while_something_is_alive(run):
    survivor = ProcessIdentity(pid=4242, create_time=1.0, boot_id="x")
    verdict = judge(run, -15, forced=True, survivors={survivor})
    assert verdict.state == "failed"
    assert "1 process (pid 4242)" in verdict.reason


def test_the_earliest_rank_error_is_the_cause(run):
    rank_error(run, 0, 20.0, "RuntimeError: connection closed by peer")
    rank_error(run, 1, 10.0, "KeyError: 'red'")
    assert judge(run, 1).reason == "Rank 1: KeyError: 'red'"


def test_a_users_mistake_is_shown_as_it_is(run):
    rank_error(run, 1, 10.0, "There is no image in /data.", user_error=True)
    assert judge(run, 1).reason == "There is no image in /data."


def test_a_killed_rank_beats_the_errors_of_the_others(run):
    rank_error(run, 0, 10.0, "RuntimeError: connection closed by peer")
    run.console.write_text(ELASTIC.format(other=1, root=-9))
    verdict = judge(run, 1)
    assert verdict.reason.startswith("Rank 1 was killed by SIGKILL;")
    assert verdict.signal == "SIGKILL"


@pytest.mark.parametrize(
    ("console", "reason", "name"),
    [
        (
            ELASTIC.format(other=-15, root=3),
            "Rank 1 ended with exit code 3; see console.log.",
            None,
        ),
        (
            ELASTIC.format(other=-15, root=-6),
            "Rank 1 was killed by SIGABRT; see console.log.",
            "SIGABRT",
        ),
        (
            "subprocess.CalledProcessError: Command '[...]' died with <Signals.SIGSEGV: 11>.",
            "Rank 0 was killed by SIGSEGV; see console.log.",
            "SIGSEGV",
        ),
        (
            "subprocess.CalledProcessError: Command '[...]' returned non-zero exit status 7.",
            "Rank 0 ended with exit code 7; see console.log.",
            None,
        ),
        ("", "The launcher ended with exit code 1; see console.log.", None),
    ],
)
def test_the_launchers_report_is_read(run, console, reason, name):
    run.console.write_text("x" * 100_000 + console)
    verdict = judge(run, 1)
    assert (verdict.state, verdict.reason, verdict.signal) == ("failed", reason, name)


def test_an_unknown_signal_has_a_number(run):
    assert judge(run, -40).reason == "The launcher was killed by signal 40; see console.log."
