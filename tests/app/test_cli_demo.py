"""The demo: two runs, one page, a speed-up at the end; whatever ends it leaves no run behind."""

from __future__ import annotations

import signal
import sys
from types import SimpleNamespace

import pytest

from app import cli
from app.commands import demo
from ringside.hardware import Hardware
from ringside.launch import local, stop


@pytest.fixture
def stage(monkeypatch, write_run):
    """Instead of launchers and a page: runs that are there at once, and a list of what happened."""
    happened = []
    before = signal.getsignal(signal.SIGTERM)
    stage = SimpleNamespace(happened=happened, states={"single": "completed", "ddp": "completed"})

    def start_run(spec, *_):
        happened.append(f"start {spec.preset} {spec.num_processes} x {spec.micro_batch}")
        run_id = f"2026010{len(happened)}-000000-calm-{spec.preset}"
        return write_run(spec, run_id, state=stage.states[spec.preset], epochs=spec.epochs)

    def stop_run(run, *, timeout_s):
        happened.append(f"stop {run.name}")

    def serve(*, port, **_):
        happened.append(f"page {port}")
        return "http://127.0.0.1:7860"

    monkeypatch.setattr(local, "start_run", start_run)
    monkeypatch.setattr(stop, "stop_run", stop_run)
    monkeypatch.setitem(sys.modules, "app.page", SimpleNamespace(serve=serve))
    monkeypatch.setattr(demo, "read_hardware", lambda: Hardware(num_cores=2))
    yield stage
    signal.signal(signal.SIGTERM, before)


def play(*argv: str) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["demo", "--once", *argv])
    return left.value.code


def test_the_story(stage, capsys):
    """Equal images per device, the page beside the first run, the speed-up at the end."""
    assert play("--epochs", "2", "--port", "7999") == 0
    assert stage.happened == ["start single 1 x 64", "page 7999", "start ddp 2 x 64"]
    out = capsys.readouterr().out
    assert "page http://127.0.0.1:7860" in out
    assert "2.00x" in out


def test_a_failed_first_run_ends_it(stage):
    stage.states["single"] = "failed"
    assert play() == 1
    assert "start ddp 2 x 64" not in stage.happened


def test_ctrl_c_stops_what_was_started(stage, monkeypatch):
    stage.states["single"] = None

    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "lines_of", interrupted)
    assert play() == 130
    assert stage.happened[-1] == "stop calm-single"


def test_one_core_is_refused_before_anything_starts(stage, monkeypatch, capsys):
    monkeypatch.setattr(demo, "read_hardware", lambda: Hardware(num_cores=1))
    assert play() == 2
    assert stage.happened == []
    assert "two CPU cores or a GPU" in capsys.readouterr().err
