"""`benchmarks/estimate.py`: what it compares, when a bar is missed, and what a visit would take."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

import msgspec
import pytest

from ringside.errors import LaunchError
from ringside.hardware import Hardware
from ringside.measurements import Crowded
from tests.estimate.test_recorded import FOLDER

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HARDWARE = Hardware(num_cores=32)
SOCKETS = ("--transport", "socket", "--processes", "2")


@pytest.fixture
def report(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import estimate_report

    return estimate_report


@pytest.fixture
def bench(report, monkeypatch, tmp_path):
    """The benchmark as a module, on a machine of 32 cores: `bench.main([...])`."""
    import estimate

    monkeypatch.setattr(estimate, "read_hardware", lambda: HARDWARE)
    return estimate


@pytest.fixture
def visit(report, tmp_path):
    """The visit of two H200s over sockets in the benchmark's own parts; `steps` may be changed."""

    def make(change=lambda timed: timed):
        def read(name):
            return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(),
                                       type=list[report.Timed])  # fmt: skip

        def keep(name, value):
            (tmp_path / f"{name}.json").write_bytes(msgspec.json.encode(value))

        for name in ("description-64", "description-256"):
            shutil.copy(FOLDER / f"{name}.json", tmp_path)
        shutil.copy(FOLDER / "sweep.json", tmp_path / "sweep-socket.json")
        for beside in read("crowd"):
            batch, step_us = beside.spec.micro_batch, [1000 * ms for ms in beside.step_ms]
            crowded = Crowded(num_processes=2, batch=batch, step_us=tuple(step_us))
            keep(f"crowd-{batch}", crowded)
        for batch in (64, 256):
            steps = [change(one) for one in read("steps") if one.spec.micro_batch == batch]
            keep(f"steps-socket-{batch}", steps)
        return tmp_path

    return make


def measured_nothing(bench, out: Path, *flags: str) -> int:
    """The report of what is there."""
    return bench.main(["--out", str(out), *SOCKETS, "--only", "nothing", *flags])


def test_the_recorded_visit_meets_its_bars(bench, visit, capsys):
    """No other launch of ddp was recorded, so nothing is said of a replay."""
    assert measured_nothing(bench, visit()) == 0
    out = capsys.readouterr().out
    assert "| replay | 0 of 0 | – | – | 3% worst | nothing counted |" in out
    assert "10% median, 20% worst | met |" in out
    assert "| all | | | | 10% worst | met |" in out
    assert "| all | | fastest first in 1 of 1 | | | 10 of 10 | met |" in out


@pytest.mark.parametrize("ratio", [0.7, 1.5])
def test_a_missed_bar_is_an_exit_code(bench, visit, capsys, ratio):
    def change(timed):
        steps = tuple(ratio * ms for ms in timed.step_ms)
        return msgspec.structs.replace(timed, step_ms=steps)

    assert measured_nothing(bench, visit(change)) == 1
    assert "10% median, 20% worst | missed |" in capsys.readouterr().out


def test_memory_has_a_bar(bench, visit, capsys):
    def change(timed):
        return msgspec.structs.replace(timed, memory_bytes=round(1.2 * timed.memory_bytes))

    assert measured_nothing(bench, visit(change)) == 1
    assert "| all | | | | 10% worst | missed |" in capsys.readouterr().out


def test_a_replay_is_calibrated_by_another_launch(bench, report, visit):
    """That one was 4 % slower, so the replay says 4 % more than what it is compared with."""
    out = visit()
    read = bench.Benchmark(bench.parse_arguments(["--out", str(out), *SOCKETS]), HARDWARE)
    ddp = next(timed for _, timed in read.cases() if timed.spec.preset == "ddp")
    median = statistics.median(ddp.step_ms)
    again = msgspec.structs.replace(ddp, step_ms=(1.04 * median,) * 5)
    (out / "again-socket-64.json").write_bytes(msgspec.json.encode([again]))
    (replay,) = (row for row in read.rows() if row.kind == "replay")
    assert replay.measured_ms == pytest.approx(median)
    assert replay.error_ratio == pytest.approx(0.04, abs=1e-3)
    assert replay.spread_ratio == pytest.approx(report.spread_ratio(ddp.step_ms))
    knobs = [row.preset for row in read.rows() if row.kind == "one knob"]
    assert knobs == ["ddp_bf16_compress", "ddp_accum4", "local_sgd"]


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        ([], "nothing counted"),
        ([0.01, 0.1, 0.2], "met"),
        ([0.01, 0.11, 0.19], "missed"),
        ([0.01, 0.05, 0.21], "missed"),
    ],
)
def test_a_bar_has_a_middle_and_a_worst(report, errors, verdict):
    assert report.verdict_of(errors, report.BARS["one device"]) == verdict


def test_the_plan_of_a_visit(bench, tmp_path, capsys):
    """One transport at one batch takes less than 100 s; what is there is not measured again."""
    (tmp_path / "crowd-64.json").write_text("{}")
    arguments = ["--out", str(tmp_path), *SOCKETS, "--plan"]
    assert bench.main([*arguments, "--only", "crowd", "steps-socket-64", "again-socket-64"]) == 0
    rows = {
        cells[0]: cells[1:]
        for line in capsys.readouterr().out.splitlines()[2:]
        for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
    }
    assert list(rows) == [
        "description-64", "crowd-64", "description-256", "crowd-256", "sweep-socket",
        "steps-socket-64", "again-socket-64", "steps-socket-256", "again-socket-256",
    ]  # fmt: skip
    states = [cells[2] for cells in rows.values()]
    assert states == ["left out", "there", "left out", "", "left out", "", "", *["left out"] * 2]
    seconds = [int(rows[name][0]) for name in ("crowd-256", "steps-socket-64", "again-socket-64")]
    assert sum(seconds[1:]) < 100
    assert int(rows["again-socket-256"][1]) == pytest.approx(sum(seconds), abs=1)


def test_a_part_that_fails_does_not_stop_the_others(bench, tmp_path, monkeypatch, capsys):
    import estimate_parts

    def fail(*_arguments, **_options):
        raise LaunchError("The sweep hung.")

    monkeypatch.setattr(estimate_parts, "measure_sweep", fail)
    crowded = Crowded(num_processes=2, batch=64, step_us=(1.0,))
    monkeypatch.setattr(estimate_parts, "measure_crowd", lambda *_, **__: crowded)
    arguments = ["--out", str(tmp_path), *SOCKETS, "--batches", "64"]
    assert bench.main([*arguments, "--only", "sweep", "crowd"]) == 0
    assert [path.name for path in tmp_path.glob("*.json")] == ["crowd-64.json"]
    assert "sweep-socket: The sweep hung." in capsys.readouterr().err
