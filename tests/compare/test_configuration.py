"""Only what differs is told: requested, observed, and the machine."""

from __future__ import annotations

import msgspec
import pytest

from ringside.compare import configuration
from ringside.hardware import Gpu, Hardware
from ringside.run import fold_run

BASE, RUN = "20260101-000000-calm-fox", "20260102-000000-swift-hare"


@pytest.fixture
def lines(root, make_spec, write_run):
    """`lines({...}, {...})`: the differences of two runs, by (group, name)."""

    def compare(first, second, **observed):
        records = []
        for run_id, fields in ((BASE, first), (RUN, second)):
            records.append(fold_run(write_run(make_spec(**fields), run_id)))
        if observed:
            records[1].observed = msgspec.structs.replace(records[1].observed, **observed)
        return {(one.group, one.name): one for one in configuration(records)}

    return compare


def test_equal_runs_differ_in_nothing(lines):
    assert lines({}, {}) == {}


def test_one_run_differs_from_nobody(make_spec, write_run):
    assert configuration([fold_run(write_run(make_spec(), BASE))]) == ()


def test_settings_are_told_with_what_follows_from_them(lines):
    found = lines({}, {"training": {"learning_rate": 0.01}, "environment": {"NCCL_ALGO": "Ring"}})
    assert found["training", "learning_rate"].requested == (0.002, 0.01)
    low, high = found["training", "peak_learning_rate"].requested
    assert high / low == pytest.approx(5)
    assert found["environment", "NCCL_ALGO"].requested == (None, "Ring")
    assert set(found) == {
        ("training", "learning_rate"), ("training", "peak_learning_rate"),
        ("environment", "NCCL_ALGO"),
    }  # fmt: skip


def test_what_ran_stands_beside_what_was_asked_for(lines):
    found = lines({}, {}, comm_hook="bf16", versions={"torch": "2.14.1"}, compiled=True)
    hook = found["training", "comm_hook"]
    assert (hook.requested, hook.observed) == (("no", "no"), ("no", "bf16"))
    assert found["training", "compiled"].requested is None
    assert found["versions", "torch"].observed == (None, "2.14.1")


def test_a_run_that_ended_before_its_set_up_was_read_back_differs_in_what_was_asked_only(
    make_spec, write_run
):
    records = [
        fold_run(write_run(make_spec(seed=seed), run)) for seed, run in ((0, BASE), (1, RUN))
    ]
    records[1].observed = records[1].started = None
    assert [(one.group, one.name) for one in configuration(records)] == [("training", "seed")]


def test_variables_that_point_into_each_runs_own_folder_are_no_difference(lines):
    own = {"TORCH_FR_DUMP_TEMP_FILE": f"/runs/{RUN}/ranks/flight_rank", "WORLD_SIZE": "2"}
    assert set(lines({}, {}, environment=own)) == {("environment", "WORLD_SIZE")}


def test_another_machine_is_told(root, make_spec, write_run):
    records = []
    for run_id, cores in ((BASE, 8), (RUN, 64)):
        run = write_run(make_spec(), run_id)
        gpu = Gpu(index=0, name="H200", uuid=run_id, memory_total_bytes=1, memory_used_bytes=cores)
        run.write(run.hardware, Hardware(num_cores=cores, gpus=(gpu,), driver="1"))
        records.append(fold_run(run))
    (line,) = configuration(records)
    assert (line.group, line.name, line.observed) == ("hardware", "num_cores", (8, 64))


def test_groups_come_in_their_order(lines):
    found = lines(
        {"preset": "single"}, {"preset": "ddp", "data": "products", "device": "cuda"},
        versions={"torch": "1"},
    )  # fmt: skip
    groups = list(dict.fromkeys(group for group, _ in found))
    assert groups == ["preset", "data", "training", "hardware", "versions"]
