"""Everything of a run comes together: its files, its baseline, and what was measured beside it."""

from __future__ import annotations

import gzip
import json

import pytest

from ringside.doctor import case_of_files, case_of_run, diagnose
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.machine import Machine
from ringside.measurements.store import Store, key_of_machine, key_of_model, key_of_spec
from ringside.speedup import baseline_of

from tests.doctor.making import changed, description, experiment, series, sweep  # isort: skip

BASE, RUN = "20260101-000000-calm-fox", "20260102-000000-swift-hare"
LOG = "host:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"


@pytest.fixture
def run(root, make_spec, write_run):
    """DDP at 1.96x, with its baseline beside it."""
    spec = make_spec("ddp", num_processes=2, micro_batch=32)
    write_run(baseline_of(spec), BASE, step_s=0.1)
    made = write_run(spec, RUN, step_s=0.1 / 0.98)
    made.write(made.hardware, Hardware(num_cores=8, memory_bytes=1))
    return made


def trace(run, rank, text=None):
    folder = run.path / "trace"
    folder.mkdir(exist_ok=True)
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::conv2d", "pid": 1, "tid": 1, "dur": 9.0}
    events = [event | {"ts": 10.0 * number} for number in range(300)]
    content = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
    data = text if text is not None else json.dumps(content).encode()
    (folder / f"rank{rank}.json.gz").write_bytes(gzip.compress(data))


def test_a_run_alone_says_what_is_missing(root, run):
    case = case_of_run(run, root)
    assert case.baseline.id == BASE
    assert (case.facts, case.nccl, case.sweep, case.experiment) == (None,) * 4
    missing = " ".join(diagnose(case).missing)
    for command in ("ringside profile swift-hare", "ringside doctor swift-hare --measure",
                    "ringside estimate ddp", "ringside doctor`"):  # fmt: skip
        assert command in missing
    assert "single" not in missing  # the baseline is there
    assert "NCCL" not in missing  # and there is none on a CPU


def test_a_run_that_scales_well_has_nothing_to_mend(root, run):
    verdict = diagnose(case_of_run(run, root)).verdict
    assert (verdict.code, verdict.cause, verdict.confidence) == ("NONE-001", "none", "medium")
    assert "1.96x" in verdict.sentence


def test_traces_logs_and_console_are_read_from_the_run(root, run):
    trace(run, 0)
    trace(run, 1)
    (run.path / "nccl").mkdir()
    (run.path / "nccl" / "host.1.log").write_text(LOG)
    run.console.write_text("x" * 100_000 + "the end")
    case = case_of_run(run, root)
    assert [rank.rank for rank in case.facts.ranks] == [0, 1]
    assert case.nccl.version == "2.28.9"
    assert case.console.endswith("the end")
    assert len(case.console) <= 65_536
    assert [path.rpartition("/")[2] for path in case.traces] == ["rank0.json.gz", "rank1.json.gz"]


def test_a_bad_file_costs_a_sentence_and_no_more(root, run):
    trace(run, 0)
    trace(run, 1, b"{")
    (run.path / "nccl").mkdir()
    (run.path / "nccl" / "host.1.log").write_text("nothing of NCCL\n")
    case = case_of_run(run, root)
    assert len(case.facts.ranks) == 1
    assert case.nccl is None
    assert len(case.problems) == 2
    assert "rank1.json.gz" in case.problems[0]
    assert diagnose(case).missing[:2] == case.problems


def test_the_store_gives_what_fits(root, run, make_spec):
    spec = make_spec("ddp", num_processes=2, micro_batch=32)
    hardware = Hardware(num_cores=8, memory_bytes=1)
    swept = changed(sweep(series(1.0)), key=key_of_machine(hardware, 2, {}))
    described = changed(
        description(host_us=1, device_us=2), key=key_of_model(spec), device_name="cpu"
    )
    other = changed(sweep(series(9.0)), key=key_of_machine(Hardware(num_cores=4), 2, {}), t=9.0)
    for one in (swept, described, other):
        Store(root).save(one)
    case = case_of_run(run, root)
    assert case.sweep == swept
    assert case.description == described


def test_an_experiment_counts_for_runs_whose_bytes_went_the_same_way(root, run, make_spec):
    spec = make_spec("ddp", num_processes=2, micro_batch=32)
    off = {"NCCL_P2P_DISABLE": "1"}
    slow = changed(
        experiment(many=50.0), key=key_of_spec(spec), spec=spec, device_name="cpu", transport=off
    )
    Store(root).save(slow)
    assert case_of_run(run, root).experiment is None
    first, *lines = run.events.read_text().splitlines()
    started = json.loads(first)
    started["observed"]["environment"] = off
    run.events.write_text("\n".join([json.dumps(started), *lines, ""]))
    assert case_of_run(run, root).experiment == slow


def test_the_machine_that_was_looked_at_counts_only_if_it_is_the_runs(root, run):
    folder = root / "measurements"
    folder.mkdir(exist_ok=True)
    own = Machine(t=5.0, hardware=Hardware(num_cores=8, memory_bytes=1), num_cores=8)
    run.write(folder / "machine.json", own)
    assert case_of_run(run, root).machine == own
    foreign = Machine(t=5.0, hardware=Hardware(num_cores=64, memory_bytes=2), num_cores=64)
    run.write(folder / "machine.json", foreign)
    case = case_of_run(run, root)
    assert (case.machine.t, case.machine.num_cores) == (0.0, 8)


def test_somebody_elses_log_tells_the_variables(tmp_path):
    path = tmp_path / "nccl.log"
    path.write_text(LOG + "host:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n")
    case = case_of_files(logs=[path])
    assert [one.name for one in case.variables] == ["NCCL_P2P_DISABLE"]
    assert case.record is None


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(RingsideError, match=r"nowhere\.json"):
        case_of_files([tmp_path / "nowhere.json"])
