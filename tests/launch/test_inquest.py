"""Who failed first, who only suffered from it, and how to go on: from files that ranks leave."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from ringside.launch import memory_kills
from ringside.launch.blame import place, waiting_sentence
from ringside.launch.evidence import collective_at
from ringside.launch.stall import StallWatch
from ringside.launch.verdict import judge
from ringside.marks import ACTIVITIES, PHASES, Mark
from ringside.records import RankError, first_failure, rank_errors, read_exit, write_exit
from ringside.run import fold_run
from tests.launch.marking import leave_marks

ELASTIC = "Root Cause:\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: 7)\n"


@pytest.fixture
def run(make_run):
    return make_run("")


def stands(rank=0, phase="train", activity="data", **fields) -> Mark:
    fields = {"epoch": 1, "step": 41, "batch": 1, "t": 100.0, **fields}
    return Mark(rank=rank, pid=1, phase=phase, activity=activity, **fields)


def leave_error(run, rank, cause, t=120.0, sentence="x", **fields) -> None:
    error = RankError(rank=rank, t=t, sentence=sentence, cause=cause, **fields)
    run.write(run.ranks / f"rank{rank}.error.json", error)


def leave_deaths(run, *deaths: tuple[int, int]) -> None:
    run.console.write_text("".join(ELASTIC.format(rank=rank, code=code) for rank, code in deaths))


BEHIND = stands(1, activity="data")
AHEAD = stands(0, activity="exchange", step=42)


def test_the_rank_behind_is_the_cause_and_not_the_one_that_complains(run):
    leave_marks(run, AHEAD, BEHIND)
    leave_error(run, 0, "timeout")
    leave_deaths(run, (1, -15), (0, 1))
    verdict = judge(run, 1)
    assert verdict.reason == (
        "Rank 1 stopped at step 41 while loading data; rank 0 waited for it in the exchange "
        "after step 42 for 20 s."
    )
    assert (verdict.failure.rank, verdict.failure.cause) == (1, "timeout")
    assert verdict.failure.last_collective == "the exchange after step 42"


def test_a_slow_rank_is_behind_though_its_mark_is_newer(run):
    """The clock says rank 0 is older; the work says that rank 1 has not come as far."""
    leave_marks(run, stands(0, activity="backward", t=100.0), stands(1, activity="forward", t=105))
    leave_error(run, 0, "timeout", t=110)
    assert judge(run, 1).failure.rank == 1


def test_a_rank_that_both_waited_and_hangs_does_not_hide_the_other(run):
    """All watchdogs speak; each only knows that it stood still."""
    leave_marks(run, AHEAD, BEHIND)
    leave_error(run, 0, "timeout", t=121)
    leave_error(run, 1, "timeout", t=120)
    assert judge(run, 1).failure.rank == 1


def test_when_all_stand_at_one_place_nobody_is_blamed(run):
    leave_marks(run, stands(0), stands(1))
    leave_error(run, 0, "timeout")
    verdict = judge(run, 1)
    assert verdict.reason == (
        "No rank came on any more; all stopped at step 41 while loading data."
    )
    assert verdict.failure.rank is None


@pytest.mark.parametrize("cause", ["timeout", "lost_connection"])
def test_consequences_never_come_first(run, cause):
    leave_marks(run, AHEAD, BEHIND)
    leave_error(run, 0, cause, t=1.0)
    leave_error(run, 1, "gpu_memory", t=2.0, sentence="The GPU ran out of memory.")
    verdict = judge(run, 1)
    assert verdict.reason == "Rank 1: The GPU ran out of memory."
    assert verdict.failure.where == "Rank 1 stood at step 41 while loading data."


def test_a_rank_that_the_launcher_had_to_kill_was_not_out_of_memory(run):
    """It hung and ignored the launcher's SIGTERM; the other's timeout was there first."""
    leave_marks(run, AHEAD, BEHIND)
    leave_error(run, 0, "timeout")
    leave_deaths(run, (1, -9), (0, 1))
    assert judge(run, 1).failure.cause == "timeout"


def test_ncclls_abort_is_read_as_a_timeout(run):
    leave_marks(run, AHEAD, BEHIND)
    leave_deaths(run, (1, -15), (0, -6))
    with run.console.open("a") as console:
        console.write(
            "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=57, "
            "OpType=ALLREDUCE, NumelIn=25557032, NumelOut=25557032, Timeout(ms)=8000) ran for ..."
        )
    verdict = judge(run, 1)
    assert verdict.failure.rank == 1
    assert verdict.failure.last_collective == "nccl:allreduce 57 of 25557032 elements"


def test_what_ncclls_recorder_says_counts_before_the_marks(run):
    leave_marks(run, AHEAD, BEHIND)
    leave_error(run, 0, "timeout", last_collective="nccl:all_reduce 57 of [8] (started)")
    assert judge(run, 1).failure.last_collective == "nccl:all_reduce 57 of [8] (started)"


def test_a_rank_that_left_without_a_word_is_found_by_the_launchers_silence(run):
    leave_marks(run, AHEAD, BEHIND)
    leave_error(run, 0, "lost_connection")
    leave_deaths(run, (0, 1))
    verdict = judge(run, 1)
    assert (verdict.failure.rank, verdict.failure.cause) == (1, "left")
    assert verdict.reason.startswith("Rank 1 ended with exit code 0 before the run was over;")


def test_a_rank_that_finished_while_others_trained_is_named(run):
    leave_marks(run, AHEAD, stands(1, activity="finished", step=40))
    leave_error(run, 0, "timeout", t=130)
    leave_deaths(run, (0, 1))
    verdict = judge(run, 1)
    assert verdict.reason == (
        "Rank 1 finished after step 40; rank 0 waited for it in the exchange after step 42 "
        "for 30 s."
    )
    assert verdict.failure.cause == "left"


def test_all_ranks_that_leave_early_have_not_completed(run):
    leave_marks(run, stands(0), stands(1))
    assert judge(run, 0).state == "failed"
    leave_marks(run, stands(0, activity="finished"), stands(1, activity="finished"))
    assert judge(run, 0).state == "completed"


def test_without_the_launchers_report_a_silent_rank_is_only_gone(run):
    """A run in a terminal: nobody saw its exit code."""
    leave_marks(run, AHEAD, BEHIND)
    leave_error(run, 0, "lost_connection")
    verdict = judge(run, 1)
    assert verdict.reason == "Rank 1 ended without a word; rank 0 lost its connection to it."
    assert verdict.failure.cause == "gone"


@pytest.mark.parametrize(
    ("kills", "cause", "words"),
    [
        (1, "memory", "the machine ran out of memory"),
        (0, "killed", "so a person, a job scheduler or a memory daemon did"),
        (None, "killed", "often the machine ran out of memory"),
    ],
)
def test_the_kernel_says_whether_memory_ran_out(run, kills, cause, words):
    leave_deaths(run, (0, -15), (1, -9))
    verdict = judge(run, 1, memory_kills=kills)
    assert words in verdict.reason
    assert (verdict.failure.rank, verdict.failure.cause) == (1, cause)


def test_the_count_of_the_own_group_goes_before_that_of_the_machine(tmp_path, monkeypatch):
    """What the kernel ended in another container says nothing about this run."""
    own, machine = tmp_path / "cgroup", tmp_path / "vmstat"
    monkeypatch.setattr(memory_kills, "OWN_GROUP", own)
    monkeypatch.setattr(memory_kills, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory_kills, "MACHINE", machine)
    assert memory_kills.num_memory_kills() is None
    machine.write_text("nr_free_pages 12\noom_kill 3\n")
    own.write_text("4:memory:/version/one\n0::/user.slice/job 7\n")
    assert memory_kills.num_memory_kills() == 3
    group = tmp_path / "groups/user.slice/job 7"
    group.mkdir(parents=True)
    (group / "memory.events").write_text("low 0\noom 9\noom_kill 0\n")
    assert memory_kills.num_memory_kills() == 0
    own.write_text("0::/\n")  # as a container sees its own
    (tmp_path / "groups/memory.events").write_text("oom_kill 2\noom_group_kill 5\n")
    assert memory_kills.num_memory_kills() == 2


def test_the_last_checkpoint_and_the_way_on(run, leave_checkpoint):
    leave_error(run, 0, "error")
    assert judge(run, 1).failure.advice == "It has no checkpoint yet; start it again."
    folder = leave_checkpoint(run, epoch=3, step=40, run=run.id)
    failure = judge(run, 1).failure
    assert (failure.checkpoint.path, failure.checkpoint.epoch) == ("checkpoints/last", 3)
    assert failure.advice == f"`ringside resume {run.name}` goes on from step 40."
    (folder / "about.json").write_text("{")
    assert judge(run, 1).failure.advice == "It has no checkpoint yet; start it again."


def test_a_mistake_is_mended_before_the_next_start(run, leave_checkpoint):
    leave_error(run, 0, "setup", user_error=True)
    leave_marks(run, stands(phase="setup", activity="begin"))
    assert judge(run, 1).failure.advice == "Mend it, then start it again."
    leave_error(run, 0, "data", user_error=True)
    assert judge(run, 1).failure.advice == "Mend it, then start it again."
    for phase in ("train", "evaluate"):  # where pictures are read
        leave_marks(run, stands(phase=phase))
        assert judge(run, 1).failure.advice == (
            "Mend or replace the file and start it again, or leave bad files out with --skip-bad."
        )
    leave_checkpoint(run, epoch=3, step=40, run=run.id)
    resume = f"`ringside resume {run.name}` goes on from step 40."
    assert judge(run, 1).failure.advice == f"Mend or replace the file, then {resume}"
    leave_error(run, 0, "files", user_error=True)
    assert judge(run, 1).failure.advice == resume


def test_files_that_say_more_are_named_and_empty_ones_are_not(run):
    leave_error(run, 1, "error")
    (run.ranks / "rank0.stack.txt").write_text("")
    (run.ranks / "rank1.stack.txt").write_text("Thread 1 ...")
    assert judge(run, 1).failure.evidence == ("ranks/rank1.error.json", "ranks/rank1.stack.txt")


def test_the_record_of_a_run_shows_the_first_cause(run):
    leave_error(run, 0, "lost_connection", sentence="The connection was lost.")
    leave_deaths(run, (0, 1), (1, -9))
    verdict = judge(run, 1)
    write_exit(run, state="failed", reason=verdict.reason, failure=verdict.failure)
    record = fold_run(run)
    assert (record.failure.rank, record.failure.sentence) == (1, verdict.reason)
    assert first_failure(rank_errors(run), None).rank == 0
    assert read_exit(run).failure == verdict.failure


def test_an_exit_record_of_before_is_read(run):
    old = {"format": 1, "state": "failed", "reason": "x", "started": 1.0, "finished": 2.0}
    run.write(run.exit, old)
    assert read_exit(run).failure is None


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (stands(phase="start", activity="begin"), "at the start"),
        (stands(phase="data", activity="begin"), "while opening the data"),
        (stands(phase="setup", activity="exchange"), "in an exchange in the set-up"),
        (stands(phase="train", activity="begin", epoch=3), "at the beginning of epoch 3"),
        (stands(activity="forward"), "at step 41 in the forward pass"),
        (stands(phase="evaluate", activity="data", epoch=3),
         "in the evaluation of epoch 3 while loading data"),
        (stands(phase="save", activity="begin", epoch=3), "in the saving after epoch 3"),
        (stands(phase="compile", activity="begin", epoch=3), "at the beginning of epoch 3"),
        (stands(phase="compile", activity="data", step=1),
         "at step 1 (compiling) while loading data"),
    ],
)  # fmt: skip
def test_every_place_has_words(mark, words):
    assert place(mark) == words


def test_each_phase_and_activity_can_be_said():
    for phase in PHASES:
        for activity in ACTIVITIES:
            assert "{" not in place(stands(phase=phase, activity=activity))


def test_several_ranks_behind_and_waiting():
    marks = [BEHIND, stands(2), stands(0, activity="backward"), stands(3, activity="backward")]
    assert waiting_sentence(marks, 108.0) == (
        "Ranks 1 and 2 stopped at step 41 while loading data; ranks 0 and 3 waited for them "
        "at step 41 in the backward pass for 8 s."
    )


@pytest.mark.parametrize(
    ("preset", "training", "mark", "words"),
    [
        ("ddp", {}, stands(activity="forward"), "the reduction of gradients at step 40"),
        ("ddp", {}, stands(activity="backward"), "the reduction of gradients at step 41"),
        ("ddp", {"accumulation_steps": 2}, stands(activity="backward"),
         "the reduction of gradients at step 40"),
        ("ddp", {"accumulation_steps": 2}, stands(activity="backward", batch=2),
         "the reduction of gradients at step 41"),
        ("ddp", {}, stands(step=1), None),
        ("ddp", {"compile": True}, stands(phase="compile", step=1, activity="backward"),
         "the reduction of gradients at step 1"),
        ("ddp", {"local_sgd_steps": 8}, stands(step=41), "the averaging of weights after step 40"),
        ("fsdp", {}, stands(phase="evaluate", activity="evaluate"),
         "the gathering of weights in the evaluation of epoch 1"),
        ("ddp", {}, stands(phase="evaluate", activity="exchange"),
         "the exchange in the evaluation of epoch 1"),
    ],
)  # fmt: skip
def test_the_newest_collective_follows_from_the_mark(make_spec, preset, training, mark, words):
    assert collective_at(mark, make_spec(preset, training=training)) == words


def test_a_run_in_which_nothing_moves_is_stalled(run, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("ringside.launch.stall.time.monotonic", lambda: clock[0])
    watch = StallWatch(run)

    def after(seconds):
        clock[0] += seconds
        return watch.stalled_s()

    assert after(10_000) is None  # No marks: not a trainer that leaves any.
    leave_marks(run, stands(0), stands(1))
    assert after(10_000) is None
    assert after(watch.limit_s - 1) is None
    leave_marks(run, stands(0, activity="forward"), stands(1))
    assert after(10) is None
    assert after(watch.limit_s) == watch.limit_s
    for unhurried in (stands(0, phase="evaluate"), stands(0, phase="compile", activity="forward"),
                      stands(0, activity="save")):  # fmt: skip
        leave_marks(run, unhurried, stands(1))
        assert after(10_000) is None
        assert after(10_000) is None


FROZEN = """
    import sys, time
    from pathlib import Path
    from ringside.marks import ACTIVITIES, LAYOUT, MAGIC, PHASES
    phase, activity = PHASES.index("train"), ACTIVITIES.index("data")
    mark = LAYOUT.pack(MAGIC, 0, 1, phase, activity, 1, 41, 1, time.time())
    (Path(sys.argv[1]) / "ranks" / "rank0.mark").write_bytes(mark)
    time.sleep(600)
"""
IMPATIENT = """
    import sys
    from ringside.launch import stall
    stall.MARGIN_S = -4.0
    from ringside.launch.supervisor import main
    sys.exit(main(sys.argv[1:]))
"""


def test_the_supervisor_ends_a_frozen_run(make_run, spec, wait_exit):
    run = make_run(FROZEN)
    settings = msgspec.structs.replace(spec.training, timeout_s=5)
    run.write(run.spec, msgspec.structs.replace(spec, training=settings))
    argv = [sys.executable, "-c", dedent(IMPATIENT), str(run.path)]
    folder = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run(argv, cwd=folder, env=environment, check=True, timeout=60)
    record = wait_exit(run)
    assert record.state == "failed"
    assert record.reason.startswith("Rank 0 stopped at step 41 while loading data and did not")


def test_a_stalled_run_is_failed_with_the_rank_that_is_behind(run):
    leave_marks(run, AHEAD, BEHIND)
    verdict = judge(run, -15, stalled_s=630)
    assert verdict.reason.startswith("Rank 1 stopped at step 41 while loading data; rank 0 waited")
