"""Two gloo ranks that are looked at and asked for things while they train."""

from __future__ import annotations

import itertools
import shutil
import socket
import statistics
from contextlib import suppress

import msgspec
import pytest
import torch

from ringside.asking import ask_for_checkpoint, ask_to_stop_after_epoch, asked_lines
from ringside.checkpoints import read_about
from ringside.errors import RunDirError
from ringside.events import CheckpointSaved, RunStarted, StopAgreed, decode_lines
from ringside.hardware import read_hardware
from ringside.identity import wait_until
from ringside.launch.local import start_run
from ringside.launch.stack_dump import dump_stacks
from ringside.run import fold_run
from ringside.samples import read_samples, series_of
from ringside.stacks import read_stacks

from tests.distributed.conftest import wait_for_end  # isort: skip

pytestmark = pytest.mark.distributed

START_S = 60.0
STEPS = 40


def events_of(run, kind):
    return [event for event in decode_lines(run.events.read_bytes()) if isinstance(event, kind)]


@pytest.fixture(scope="module")
def default_port_taken():
    """Somebody else holds the port that the launcher would choose by itself."""
    with socket.socket() as taken:
        with suppress(OSError):  # somebody else really does
            taken.bind(("127.0.0.1", 29500))
            taken.listen()
        yield


@pytest.fixture(scope="module")
def asked(session_root, make_request, default_port_taken):
    """A run that was asked for its stacks and a checkpoint, then to end after its epoch.

    Returns the run, its record, the stacks, the copy of the checkpoint, and what it said meanwhile.
    """
    spec = make_request("ddp", epochs=50, batch=16)
    run = start_run(spec, read_hardware(), session_root)
    assert wait_until(lambda: len(fold_run(run).windows) >= 2, START_S), run.console.read_text()
    stacks = dump_stacks(run)
    kept = run.path / "kept"
    for _ in range(4):  # by chance it falls on an epoch's last step, where nobody has to ask
        num_saved = len(events_of(run, CheckpointSaved))
        ask_for_checkpoint(run)
        said = [asked_lines(fold_run(run))]
        assert wait_until(lambda n=num_saved: len(events_of(run, CheckpointSaved)) > n, 20.0)
        shutil.copytree(run.checkpoints / "last", kept, dirs_exist_ok=True)
        if read_about(kept).step % STEPS:
            break
    # A load needs two looks, and this run may be over before the second.
    assert wait_until(lambda: len(read_samples(run)) >= 3, START_S)
    ask_to_stop_after_epoch(run)
    said.append(asked_lines(fold_run(run)))
    return run, wait_for_end(run), stacks, kept, said


def test_every_rank_shows_where_it_stands(asked):
    run, _, stacks, _, _ = asked
    assert [(one.rank, one.problem) for one in stacks] == [(0, None), (1, None)]
    for one in stacks:
        assert any(frame.function == "_run" and frame.is_own for frame in one.main.frames)
    assert [one.rank for one in read_stacks(run)] == [0, 1]


def test_a_checkpoint_that_was_asked_for_is_whole_and_can_be_gone_on_from(asked, session_root):
    _, record, _, kept, said = asked
    assert said[0] in ((), ("saves a checkpoint at its next step",))  # It may have been done.
    about = read_about(kept)
    assert about.step % STEPS != 0, "that of an epoch's end, which nobody asked for"
    assert torch.load(kept / "training.pt", weights_only=False)
    spec = msgspec.structs.replace(record.spec, resume_from=str(kept), epochs=about.epoch)
    resumed = start_run(spec, read_hardware(), session_root)
    assert wait_for_end(resumed).state == "completed"
    (started,) = events_of(resumed, RunStarted)
    assert started.resumed_from == str(kept)
    windows = fold_run(resumed).windows
    assert windows[0].step > about.step
    assert windows[-1].step == about.epoch * STEPS


def test_it_ends_after_the_epoch_with_its_scores(asked):
    run, record, _, _, said = asked
    assert any(line.startswith("stops after epoch ") for line in said[1])
    assert record.state == "stopped"
    assert len(record.epochs) < record.spec.epochs
    assert not run.requested("checkpoint")
    (agreed,) = events_of(run, StopAgreed)
    assert (agreed.request, agreed.epoch) == ("stop-after-epoch", record.epochs[-1].epoch)
    assert record.epochs[-1].num_evaluated == record.started.num_val
    assert record.windows[-1].step == agreed.epoch * STEPS
    assert read_about(run.checkpoints / "last").step == agreed.step
    assert asked_lines(record) == ()


def test_a_run_that_is_over_refuses_in_a_sentence(asked):
    run = asked[0]
    for ask, what in (
        (ask_for_checkpoint, "cannot save a checkpoint"),
        (ask_to_stop_after_epoch, "cannot end after its epoch"),
        (dump_stacks, "only a run under way"),
    ):
        with pytest.raises(RunDirError, match=what):
            ask(run)
    assert not (run.requests / "checkpoint.json").exists()


def test_how_busy_the_ranks_were_is_kept(asked):
    run = asked[0]
    found = {(one.of, one.index, one.name): one for one in series_of(read_samples(run))}
    for rank in (0, 1):
        assert 0 < found["rank", rank, "cpu_cores"].max < 4
        assert found["rank", rank, "memory_bytes"].max > 2**27
    times = [sample.t for sample in read_samples(run)]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert 1.9 < statistics.median(gaps) < 5.0  # every 2 s, on a busy machine a little later


def test_a_healthy_run_never_stood_still(asked):
    assert asked[1].hang is None
