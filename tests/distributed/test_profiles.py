"""Traces of two real ranks, on request and after training, which change nothing of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ringside.events import DdpReported, Profiled, decode_lines
from ringside.hardware import read_hardware
from ringside.identity import run_processes
from ringside.launch.local import create_run, start, start_run
from ringside.rank_windows import rank_parts, slowest
from ringside.records import read_exit
from ringside.request import continue_run
from ringside.rundir import RunDir
from ringside.trace import analyse, read_traces

from tests.distributed.conftest import first_on_path, wait_for_end  # isort: skip

pytestmark = pytest.mark.distributed


# Python imports it by itself; on rank 1 the profile after training finds no memory.
SITE = """
import importlib.abc, importlib.util, os, sys

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "training.recorder":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module
        spec.loader.exec_module = lambda module: (load(module), break_in(module))
        return spec

def break_in(module):
    def begin(*_):
        raise module.torch.OutOfMemoryError("CUDA out of memory.")
    module.Recorder.begin = begin

if os.environ.get("RANK") == "1":
    sys.meta_path.insert(0, Finder())
"""


@pytest.fixture(scope="module")
def profiled(tmp_path_factory, make_request):
    """A run that is profiled on request and stopped after its first epoch, and its continuation."""
    root = tmp_path_factory.mktemp("100% profiled")
    first = create_run(make_request("ddp", profile=3), read_hardware(), root)
    first.request("profile", steps=2)
    first.request("stop-after-epoch")
    start(first)
    assert wait_for_end(first).state == "stopped"
    second = start_run(continue_run(first, read_hardware()), read_hardware(), root)
    record = wait_for_end(second)
    assert record.state == "completed", record.failure
    return first, second


def events_of(run: RunDir, kind: type) -> list:
    return [event for event in decode_lines(run.events.read_bytes()) if isinstance(event, kind)]


@pytest.mark.parametrize(("number", "num_steps"), [(0, 2), (1, 3)], ids=["asked for", "at the end"])
def test_all_ranks_record_the_same_steps(profiled, number, num_steps):
    run = profiled[number]
    (event,) = events_of(run, Profiled)
    assert (event.num_steps, event.after_training) == (num_steps, number == 1)
    assert event.files == ("trace/rank0.json.gz", "trace/rank1.json.gz")
    traces, faults = read_traces([run.trace])
    assert (faults, [trace.rank for trace in traces]) == ([], [0, 1])
    assert {trace.world_size for trace in traces} == {2}
    assert all(len(trace.steps) == num_steps for trace in traces)
    calls = [[call.num_bytes for call in trace.collectives] for trace in traces]
    assert calls[0] == calls[1]
    reported = events_of(run, DdpReported)[-1]
    buckets = reported.rebuilt_bucket_bytes or reported.bucket_bytes
    assert sum(calls[0]) == num_steps * sum(buckets)
    assert {call.operation for trace in traces for call in trace.collectives} == {"all_reduce"}
    assert analyse(traces).is_matched


def test_a_profile_changes_neither_the_run_nor_its_continuation(profiled, finished_run):
    whole = finished_run("ddp")
    expected = load_file(Path(whole.path) / "checkpoints/last/model.safetensors")
    for name, tensor in load_file(profiled[1].checkpoints / "last/model.safetensors").items():
        assert torch.equal(tensor, expected[name]), name
    record = wait_for_end(profiled[1])
    assert [row.epoch for row in record.epochs] == [2]
    assert record.epochs[0].train_loss == whole.epochs[1].train_loss
    assert record.epochs[0].auc_macro == whole.epochs[1].auc_macro
    assert not record.epochs[0].profiled
    assert wait_for_end(profiled[0]).epochs[0].profiled


def test_ddp_says_what_its_buckets_became(profiled, finished_run):
    whole = finished_run("ddp")
    reports = events_of(RunDir(Path(whole.path)), DdpReported)
    assert [report.epoch for report in reports] == [1, 2]
    assert reports[-1] == whole.ddp
    assert whole.ddp.has_rebuilt_buckets
    assert sum(whole.ddp.rebuilt_bucket_bytes) == 4 * whole.observed.num_trainable_parameters
    assert whole.ddp.find_unused_parameters is False
    assert len(whole.ddp.rebuilt_bucket_bytes) == whole.epochs[1].collectives_per_step
    assert whole.ddp.communication_span_ms > 0


def test_each_rank_says_where_its_steps_go(finished_run):
    whole = finished_run("ddp")
    ranks = rank_parts(RunDir(Path(whole.path)))
    assert [rank.rank for rank in ranks] == [0, 1]
    for rank in ranks:
        host = rank.forward_ms + rank.backward_ms + rank.optimizer_ms
        assert rank.host_ms == pytest.approx(host, rel=0.01)
        assert rank.data_ms + rank.host_ms <= rank.step_ms * 1.01
    assert {one.part for one in slowest(ranks)} == {"data", "forward", "host"}


def test_a_rank_that_cannot_record_leaves_a_completed_run_and_no_waiting(
    root, make_request, tmp_path, monkeypatch
):
    """Rank 0 waits for it in the reduction, for a timeout of ten minutes if nobody ended it."""
    (tmp_path / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", first_on_path(tmp_path))
    request = make_request("ddp", profile=3, epochs=1)
    record = wait_for_end(start_run(request, read_hardware(), root), timeout_s=90)
    run = RunDir(Path(record.path))
    assert (record.state, record.failure) == ("completed", None)
    assert "the profile after training did not come to its end" in read_exit(run).reason
    assert events_of(run, Profiled) == []
    assert "No steps were recorded after training" in run.console.read_text()
    assert run_processes(run.id) == set()
