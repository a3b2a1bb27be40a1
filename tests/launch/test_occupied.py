"""Beside a run nothing is timed: which runs are in the way, and what is said."""

from __future__ import annotations

import msgspec
import pytest

from ringside.hardware import Gpu, Hardware
from ringside.launch.occupied import DevicesInUseError, require_idle, runs_on
from ringside.records import read_owner, write_owner

CPU = Hardware(num_cores=2)
GPU = Hardware(gpus=(Gpu(index=0, name="x", uuid="y", memory_total_bytes=1, memory_used_bytes=0),))
RUN, OTHER = "20260102-030402-calm-otter", "20260102-030403-amber-fox"


@pytest.fixture
def live(write_run, make_spec):
    """`live(RUN)`: an unfinished run on CPUs that this test owns."""

    def make(run_id):
        run = write_run(make_spec("ddp"), run_id, state=None)
        write_owner(run, "supervisor")
        return run

    return make


def test_nothing_is_in_the_way_before_the_first_run_and_after_the_last(write_run, make_spec, root):
    assert runs_on(root, CPU) == []
    write_run(make_spec("ddp"), RUN)
    assert runs_on(root, CPU) == []
    require_idle(root, CPU)


def test_a_run_under_way_is_named(live, root):
    live(RUN)
    with pytest.raises(DevicesInUseError, match=r"^calm-otter uses .* `ringside stop calm-otter`"):
        require_idle(root, CPU)
    live(OTHER)
    with pytest.raises(DevicesInUseError, match=r"^amber-fox, calm-otter use the devices"):
        require_idle(root, CPU)


def test_runs_of_another_kind_of_device_are_in_nobodys_way(live, root):
    live(RUN)
    assert runs_on(root, GPU) == []


def test_a_run_of_another_machine_is_in_nobodys_way(live, root):
    run = live(RUN)
    run.write(run.owner, msgspec.structs.replace(read_owner(run), host="elsewhere"))
    assert runs_on(root, CPU) == []


def test_a_run_whose_owner_is_gone_is_in_nobodys_way(live, root):
    run = live(RUN)
    owner = read_owner(run)
    gone = msgspec.structs.replace(owner.process, pid=2**22 + 1)
    run.write(run.owner, msgspec.structs.replace(owner, process=gone))
    assert runs_on(root, CPU) == []
