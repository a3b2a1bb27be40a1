"""Each kind of failure is recognised by what torch, gloo, NCCL and the system really say."""

from __future__ import annotations

import errno
from datetime import timedelta

import pytest
import torch
from torch import distributed
from torch._utils import ExceptionWrapper

from ringside.errors import DataError, RingsideError
from ringside.records import RankError, rank_errors
from ringside.rundir import RunDir
from training.failure import describe, recognise, write_error
from training.flight import name_last


def system_error(number: int) -> OSError:
    return OSError(number, "No space left on device" if number == errno.ENOSPC else "x")


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "gpu_memory"),
        (RuntimeError("CUDA error: out of memory"), "gpu_memory"),
        (RuntimeError("NCCL Error 1: Cuda failure 2 'out of memory'"), "gpu_memory"),
        (MemoryError(), "memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory"),
        (system_error(errno.ENOSPC), "disk_full"),
        (system_error(errno.EDQUOT), "disk_full"),
        (RuntimeError("unable to write to file </torch_12_3>: No space left on device (28)"),
         "shared_memory"),
        (RuntimeError("DataLoader worker (pid 12) is killed by signal: Bus error. It is possible "
                      "that dataloader's workers are out of shared memory."), "shared_memory"),
        (RuntimeError("DataLoader worker (pid 12) is killed by signal: Killed. "), "loader_worker"),
        (RuntimeError("DataLoader worker (pid(s) 12, 13) exited unexpectedly"), "loader_worker"),
        (RuntimeError("Timed out waiting 8000ms for recv operation to complete"), "timeout"),
        (RuntimeError("Application timeout caused pair closure"), "timeout"),
        (distributed.DistStoreError("wait timeout after 8000ms, keys: /a"), "timeout"),
        (RuntimeError("Connection closed by peer [127.0.0.1]:4711"), "lost_connection"),
        (distributed.DistBackendError("ncclRemoteError: A call failed possibly due to a network "
                                      "error or a remote process exiting prematurely."),
         "lost_connection"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), "lost_connection"),
        (distributed.DistNetworkError("EADDRINUSE, address already in use"), "port"),
        (ModuleNotFoundError("No module named 'x'"), "import"),
        (ValueError("Expected more than 1 value per channel when training"), "setup"),
        (SystemExit(0), "left"),
        (DataError("3.jpg is cut short."), "data"),
        (DataError("x cannot be written: No space left on device."), "disk_full"),
        (RingsideError("The loss is not a finite number any more at step 3."), "not_finite"),
        (KeyError("{red}"), "error"),
    ],
)  # fmt: skip
def test_the_cause_is_recognised(error, cause):
    assert recognise(error)[0] == cause


def test_a_connection_that_is_lost_for_real_is_recognised():
    """gloo's own words, not a copy of them: a store that nobody serves."""
    with pytest.raises(distributed.DistError) as caught:
        distributed.TCPStore("127.0.0.1", 1, 2, is_master=False, timeout=timedelta(seconds=1))
    assert recognise(caught.value)[0] in ("timeout", "lost_connection")


def test_an_error_of_a_loader_worker_keeps_its_own_words():
    """Wrapped by what torch's worker wraps it with."""
    try:
        raise KeyError("red")
    except KeyError:
        wrapped = ExceptionWrapper(where="in DataLoader worker process 0")
    with pytest.raises(KeyError) as caught:
        wrapped.reraise()
    assert describe(caught.value) == "KeyError: 'red'"


def test_a_worker_that_is_killed_is_named_with_its_number():
    text = "DataLoader worker (pid 4711) is killed by signal: Killed. "
    assert "loader worker (pid 4711)" in describe(RuntimeError(text))


def test_braces_in_a_message_stay_what_they_are():
    assert describe(ImportError("{0} {x}")) == "ImportError: {0} {x}"


@pytest.fixture
def run(tmp_path):
    (tmp_path / "ranks").mkdir()
    return RunDir(tmp_path)


def test_causes_come_before_consequences(run):
    write_error(run, 0, RuntimeError("Connection closed by peer"))
    write_error(run, 1, KeyError("red"))
    first, second = rank_errors(run)
    assert (first.rank, first.cause, second.cause) == (1, "error", "lost_connection")
    assert "KeyError" in first.traceback


def test_a_record_without_a_cause_is_read(run):
    old = {"rank": 0, "t": 1.0, "sentence": "x", "traceback": None, "user_error": True}
    run.write(run.ranks / "rank0.error.json", old)
    assert rank_errors(run) == [RankError(rank=0, t=1.0, sentence="x", user_error=True)]


def test_a_disk_that_is_full_hides_no_error(run):
    run.ranks.rmdir()
    write_error(run, 0, KeyError("red"))
    assert rank_errors(run) == []


def test_the_collective_that_did_not_complete_is_named():
    def entry(number, state):
        return {
            "collective_seq_id": number, "profiling_name": "nccl:all_reduce",
            "input_sizes": [[25557032]], "state": state,
        }  # fmt: skip

    assert name_last([]) is None
    done = [entry(55, "completed"), entry(56, "completed")]
    assert name_last(done) == "nccl:all_reduce 56 of [25557032] (completed)"
    waiting = [*done, entry(57, "started"), entry(58, "scheduled")]
    assert name_last(waiting) == "nccl:all_reduce 57 of [25557032] (started)"
