"""Where NCCL is told to log, and that nobody's own wish is overridden."""

from __future__ import annotations

import os

import msgspec
import pytest

from ringside.rundir import RunDir
from training import nccl_log
from training.observation import recorded_environment


@pytest.fixture
def spec(make_spec):
    """Two processes with a GPU each, which the machine of a test need not have."""
    made = make_spec("ddp", training={}, epochs=1)
    return msgspec.structs.replace(made, device="cuda", gpu_ids=(0, 1), num_processes=2)


@pytest.fixture
def run(tmp_path, monkeypatch) -> RunDir:
    for name in nccl_log.VARIABLES:
        monkeypatch.setenv(name, "")  # Restored afterwards, whatever is set meanwhile.
        monkeypatch.delenv(name)
    folder = tmp_path / "50% of p'runs"
    folder.mkdir()
    return RunDir(folder)


def test_each_process_gets_a_file_of_its_own(run, spec):
    nccl_log.log_into(spec, run)
    pattern = os.environ["NCCL_DEBUG_FILE"]
    assert expanded(pattern, host="node1", pid=77) == str(run.nccl / "node1.77.log")
    assert run.nccl.is_dir()
    assert os.environ["NCCL_DEBUG"] == "INFO"
    subsystems = os.environ["NCCL_DEBUG_SUBSYS"].split(",")
    assert {"INIT", "ENV", "GRAPH"} <= set(subsystems)
    assert not {"COLL", "TUNING", "CALL", "ALL"} & set(subsystems)
    assert nccl_log.why_not(spec, run) is None


def test_what_ringside_sets_is_not_what_the_rank_got(run, spec, monkeypatch):
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    nccl_log.log_into(spec, run)
    names = [name for name in recorded_environment() if name.startswith("NCCL_")]
    assert names == ["NCCL_ALGO"]


@pytest.mark.parametrize("name", nccl_log.VARIABLES)
def test_what_a_person_or_the_preset_set_stays_and_is_noted(run, spec, monkeypatch, name):
    monkeypatch.setenv(name, "WARN")
    nccl_log.log_into(spec, run)
    assert {key: os.environ[key] for key in nccl_log.VARIABLES if key in os.environ} == {
        name: "WARN"
    }
    note = nccl_log.why_not(spec, run)
    assert note is not None
    assert note.startswith(f"{name}=WARN is set outside of Ringside")
    assert recorded_environment()[name] == "WARN"
    assert not run.nccl.exists()


@pytest.mark.parametrize("fields", [{"device": "cpu", "gpu_ids": ()}, {"num_processes": 1}])
def test_without_nccl_there_is_no_log(run, spec, fields):
    import types

    other = types.SimpleNamespace(**{"device": "cuda", "num_processes": 2, **fields})
    nccl_log.log_into(other, run)
    assert not set(nccl_log.VARIABLES) & set(os.environ)
    assert nccl_log.why_not(other, run) is None
    assert not run.nccl.exists()


def test_a_run_directory_that_cannot_be_written_stops_nothing(run, spec):
    run.path.rmdir()
    nccl_log.log_into(spec, run)
    assert "NCCL_DEBUG_FILE" not in os.environ
    assert nccl_log.why_not(spec, run) is None


def expanded(pattern: str, *, host: str, pid: int) -> str:
    """As NCCL's ncclDebugInit does (src/debug.cc): %% is a percent sign, unknown letters stay."""
    text, at = "", 0
    while at < len(pattern):
        if pattern[at] != "%":
            text, at = text + pattern[at], at + 1
            continue
        letter = pattern[at + 1]
        text += {"%": "%", "h": host, "p": str(pid)}.get(letter, f"%{letter}")
        at += 2
    return text
