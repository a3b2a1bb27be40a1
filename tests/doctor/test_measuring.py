"""What the terminal and the page measure alike, with launches that take no time."""

from __future__ import annotations

import json
import os

import msgspec
import pytest

from ringside.doctor import measuring
from ringside.doctor.machine_check import case_of_machine
from ringside.errors import RunDirError
from ringside.hardware import Hardware
from ringside.launch import probing, torch_report
from ringside.launch.occupied import DevicesInUseError
from ringside.machine import Machine
from ringside.measurements import Experiment, Sweep
from ringside.measurements.store import key_of_machine

CPU = Hardware(num_cores=2)
RUN = "20260102-030402-calm-otter"


@pytest.fixture
def said():
    """Sentences of progress."""
    return []


def test_a_machine_is_kept_with_its_sweep(root, monkeypatch, said):
    found = Sweep(t=2.0, key=key_of_machine(CPU, 2, os.environ), device_name="cpu", num_ranks=2)
    machine = Machine(t=1.0, hardware=CPU, num_cores=2)
    monkeypatch.setattr(torch_report, "check_machine", lambda folder, **_: machine)
    monkeypatch.setattr(probing, "measure_sweep", lambda hardware, n, say: say("half") or found)
    assert case_of_machine(root).machine is None
    looked, path = measuring.look_at_machine(root)
    assert (looked, path.is_file()) == (machine, True)
    sweep, kept = measuring.sweep_machine(CPU, root, said.append)
    assert (sweep, kept.is_file(), said) == (found, True, ["half"])
    case = case_of_machine(root)
    assert (case.machine, case.sweep) == (machine, found)


def test_one_device_has_nobody_to_talk_to(root, said):
    assert measuring.sweep_machine(Hardware(num_cores=1), root, said.append) is None


def test_a_folder_that_cannot_be_written_is_a_sentence(root, monkeypatch):
    machine = Machine(t=1.0, hardware=CPU)
    monkeypatch.setattr(torch_report, "check_machine", lambda folder, **_: machine)
    root.write_text("a file")
    with pytest.raises(RunDirError, match="cannot be written"):
        measuring.look_at_machine(root)


def test_a_run_is_repeated_the_way_its_bytes_went(root, monkeypatch, said, write_run, make_spec):
    run = write_run(make_spec("ddp"), RUN)
    first, *lines = run.events.read_text().splitlines()
    started = json.loads(first)
    started["observed"]["environment"] = {"NCCL_P2P_DISABLE": "1"}
    run.events.write_text("\n".join([json.dumps(started), *lines, ""]))
    asked = {}

    def measure(spec, hardware, **given):
        asked.update(given, spec=spec)
        return Experiment(t=1.0, key="abc", device_name="cpu", spec=spec, arms=())

    monkeypatch.setattr(probing, "measure_experiment", measure)
    monkeypatch.setattr(measuring, "read_hardware", lambda: CPU)
    kept = measuring.measure_run(run, root, said.append)
    assert msgspec.json.decode(kept.read_bytes(), type=Experiment).spec == asked["spec"]
    assert asked["environment"] == {"NCCL_P2P_DISABLE": "1"}


def test_a_disk_that_is_full_for_a_while_ends_no_experiment(
    root, monkeypatch, said, write_run, make_spec
):
    """What is kept in between is lost then; what counts is the last of it."""
    run = write_run(make_spec("ddp"), RUN)
    kept, save = [], measuring.Store.save

    def save_later(store, found):
        if not kept:
            kept.append(found)
            raise RunDirError("No space left on device.")
        return save(store, found)

    def measure(spec, hardware, *, keep, **_given):
        found = Experiment(t=1.0, key="abc", device_name="cpu", spec=spec, arms=())
        keep(found)
        return found

    monkeypatch.setattr(measuring.Store, "save", save_later)
    monkeypatch.setattr(probing, "measure_experiment", measure)
    monkeypatch.setattr(measuring, "read_hardware", lambda: CPU)
    assert measuring.measure_run(run, root, said.append).is_file()
    assert len(kept) == 1


def test_nothing_is_timed_beside_a_run(root, monkeypatch, said, write_run, make_spec):
    run = write_run(make_spec("ddp"), RUN, state=None)
    monkeypatch.setattr(measuring, "read_hardware", lambda: CPU)
    with pytest.raises(DevicesInUseError, match="calm-otter"):
        measuring.measure_run(run, root, said.append)
    with pytest.raises(DevicesInUseError, match="calm-otter"):
        measuring.sweep_machine(CPU, root, said.append)
