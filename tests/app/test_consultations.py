"""Visits to the doctor in a process of its own, and measurements one at a time."""

from __future__ import annotations

import json
import os
import sys
import time

import pytest

from app.views import consultations, doctor_worker, measuring, measuring_worker
from app.views.consultations import Consultations, signature_of
from app.views.measuring import Measuring
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.identity import wait_until
from ringside.launch import probing, torch_report
from ringside.machine import Machine
from ringside.measurements import Point, Series, Sweep
from ringside.measurements.store import FOLDER, key_of_machine

SAYS = """
import sys, time
order = sys.stdin.buffer.readline()
print("a library prints")
print('{"type":"said","line":"half way"}', flush=True)
from app.views.child import end_with_the_page
end_with_the_page()
try:
    time.sleep(SECONDS)
except KeyboardInterrupt:
    sys.exit(130)
print(ANSWER, flush=True)
"""


def worker(answer, seconds=0):
    code = SAYS.replace("SECONDS", str(seconds)).replace("ANSWER", repr(json.dumps(answer)))
    return (sys.executable, "-c", code)


def done(visits, run_id):
    assert wait_until(lambda: visits.state(run_id).kind != "running", 60)
    return visits.state(run_id)


def test_a_run_is_looked_at_once_until_its_files_change(runs, runs_root, monkeypatch):
    runs.add("amber-fox", preset="single", epochs=3, ended="completed")
    run = runs.add("calm-otter", epochs=3, ended="completed")
    visits = Consultations(runs_root)
    state = done(visits, run.id)
    view = state.view
    assert view is not None, state.sentence
    assert view.verdict.sentence
    assert next(picture.name for picture in view.pictures) == "waterfall"
    assert len(view.points) == 6
    assert any("trace" in sentence for sentence in view.missing)
    monkeypatch.setattr(consultations, "Child", lambda *_, **__: pytest.fail("asked again"))
    assert visits.state(run.id).view is view


def test_what_changes_is_looked_at_again(runs, runs_root):
    run = runs.add("calm-otter", epochs=3, ended="completed")
    before = signature_of(runs_root, run.id)
    assert signature_of(runs_root, run.id) == before
    run.trace.mkdir()
    (run.trace / "rank0.json.gz").write_bytes(b"x")
    with_trace = signature_of(runs_root, run.id)
    assert with_trace != before
    (runs_root / FOLDER).mkdir()
    (runs_root / FOLDER / "sweep-x-1.json").write_text("{}")
    assert signature_of(runs_root, run.id) != with_trace


def test_a_run_under_way_is_looked_at_again_once_a_minute(runs, runs_root, monkeypatch):
    run = runs.add("calm-otter", epochs=1)
    minutes = []
    for seconds in (1000, 1001, 1100):
        os.utime(run.events, (seconds, seconds))
        minutes.append(signature_of(runs_root, run.id))
    assert minutes[0] == minutes[1] != minutes[2]


def test_a_baseline_that_comes_later_is_looked_at(runs, runs_root):
    run = runs.add("calm-otter", epochs=3, ended="completed")
    before = signature_of(runs_root, run.id)
    runs.add("amber-fox", preset="single", epochs=3, ended="completed")
    assert signature_of(runs_root, run.id) != before


def test_a_visit_that_failed_is_made_again_after_a_pause(runs, runs_root, monkeypatch):
    run = runs.add("calm-otter", epochs=3, ended="completed")
    asked = []

    def broken(*_, **__):
        asked.append(1)
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(consultations, "Child", broken)
        visits = Consultations(runs_root)
        assert done(visits, run.id).kind == "failed"  # whatever is raised, it does not run for ever
        assert visits.state(run.id).kind == "failed"
        assert len(asked) == 1
    monkeypatch.setattr(consultations, "RETRY_PAUSE_S", 0.0)
    assert visits.state(run.id).kind == "running"
    assert done(visits, run.id).kind == "done"


def test_of_a_folder_that_is_no_run_nothing_is_claimed(runs_root):
    (runs_root / "20260102-030401-no-run").mkdir()
    state = done(Consultations(runs_root), "20260102-030401-no-run")
    assert state.view is not None, state.sentence
    assert state.view.verdict.confidence == "Not enough data to be sure"
    assert state.view.pictures == ()


def test_a_machine_that_nobody_checked_has_a_view_too(runs_root):
    state = done(Consultations(runs_root), None)
    assert state.view is not None, state.sentence
    assert state.view.points == ()


def test_a_measurement_goes_on_by_itself_and_everybody_sees_it(runs_root, monkeypatch, hardware):
    monkeypatch.setattr(measuring, "WORKER", worker({"type": "done", "sentence": "Measured."}, 1))
    measure = Measuring(runs_root)
    measure.start("machine", hardware)
    measure.start("machine", hardware)  # pressed twice it is one
    assert wait_until(lambda: measure.state.line == "half way", 20)
    with pytest.raises(RingsideError, match="Another measurement"):
        measure.start("experiment", hardware, "20260102-030401-calm-otter")
    assert wait_until(lambda: not measure.state.under_way, 20)
    assert (measure.state.kind, measure.state.line) == ("done", "Measured.")


def test_a_measurement_that_cannot_be_followed_has_failed(runs_root, monkeypatch, hardware):
    monkeypatch.setattr(measuring, "WORKER", worker({"type": "done", "sentence": "x"}))
    monkeypatch.setattr(measuring.Child, "finish", lambda self: 1 / 0)
    measure = Measuring(runs_root)
    measure.start("machine", hardware)
    assert wait_until(lambda: not measure.state.under_way, 20)
    assert measure.state.kind == "failed"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [({"type": "failed", "sentence": "No room."}, "No room."), ("nonsense", "without a result")],
)
def test_a_measurement_that_fails_says_why(runs_root, monkeypatch, hardware, answer, sentence):
    monkeypatch.setattr(measuring, "WORKER", worker(answer))
    measure = Measuring(runs_root)
    measure.start("machine", hardware)
    assert wait_until(lambda: not measure.state.under_way, 20)
    assert measure.state.kind == "failed"
    assert sentence in measure.state.line


@pytest.mark.parametrize(
    ("what", "run_id", "left"),
    [
        ("machine", None, "nothing was stored"),
        ("experiment", "20260102-030402-calm-otter", "from its first whole round on is kept"),
    ],
)
def test_a_measurement_can_be_stopped(runs_root, monkeypatch, hardware, what, run_id, left):
    monkeypatch.setattr(measuring, "WORKER", worker({"type": "done", "sentence": "x"}, 60))
    measure = Measuring(runs_root)
    measure.start(what, hardware, run_id)
    assert wait_until(lambda: measure.state.line == "half way", 20)
    began = time.monotonic()
    measure.stop()
    assert wait_until(lambda: not measure.state.under_way, 20)
    assert measure.state.kind == "stopped"
    assert left in measure.state.line
    assert time.monotonic() - began < 10


def test_what_is_measured_is_stored_where_the_doctor_looks(runs_root, monkeypatch, capfd):
    hardware = Hardware(num_cores=2)
    key = key_of_machine(hardware, 2, os.environ)
    points = tuple(
        Point(num_bytes=n << 20, median_us=1000.0 * n, p90_us=0, repeats=5) for n in (1, 16)
    )
    series = Series(operation="all_reduce", dtype="fp32", backend="gloo", num_ranks=2,
                    points=points)  # fmt: skip
    found = Sweep(t=2.0, key=key, device_name="cpu", num_ranks=2, series=(series,))
    looked = Machine(t=1.0, hardware=hardware, num_cores=2)
    monkeypatch.setattr(torch_report, "check_machine", lambda root, **_: looked)
    monkeypatch.setattr(probing, "measure_sweep", lambda hardware, n, say: say("16 MiB") or found)
    assert "checked" in measuring_worker.measure_machine(runs_root)
    assert '"line":"16 MiB"' in capfd.readouterr().out
    view = doctor_worker.look(runs_root, None)
    assert [picture.name for picture in view.pictures] == ["all-reduce"]
    assert view.machine.looked


def test_of_one_device_only_the_machine_is_looked_at(runs_root, monkeypatch):
    looked = Machine(t=1.0, hardware=Hardware(num_cores=1))
    monkeypatch.setattr(torch_report, "check_machine", lambda root, **_: looked)
    assert "nothing to exchange" in measuring_worker.measure_machine(runs_root)


def test_nothing_is_measured_beside_a_run(runs, runs_root, hardware, monkeypatch):
    monkeypatch.setattr(measuring, "Child", lambda *_, **__: pytest.fail("started"))
    runs.add("amber-fox", epochs=1, ended="completed")
    runs.add("calm-otter", epochs=1)
    with pytest.raises(RingsideError, match="calm-otter uses the devices"):
        Measuring(runs_root).start("machine", hardware)
