"""What the profiler touched is no measure of speed: not in the rate, the speed-up or the step."""

from __future__ import annotations

import msgspec
import pytest

from app.views.run import run_view
from ringside import events as ev
from ringside.run import RunRecord, fold_events
from ringside.speedup import baseline_of, scaling_of, speedup

SLOW = {"profiled": True, "samples_per_s": 50.0}


def trained(epoch: int, **fields: object) -> ev.EpochTrained:
    values = {
        "epoch_time_s": 10.0, "num_samples": 1000, "samples_per_s": 100.0,
        "num_optimizer_steps": 10, "train_loss": 0.5, "epoch_time_s_min": 10.0,
    }  # fmt: skip
    return ev.EpochTrained(epoch=epoch, **{**values, **fields})


def window(step: int, step_ms: float = 100.0, **fields: object) -> ev.WindowTimed:
    return ev.WindowTimed(
        epoch=1, step=step, num_steps=5, samples_per_s=640, train_loss=0.5, learning_rate=0.1,
        step_ms=step_ms, data_ms=0, forward_ms=40, backward_ms=50, optimizer_ms=10,
        step_ms_min=step_ms, data_ms_min=0, **fields,
    )  # fmt: skip


@pytest.fixture
def record_of(make_spec, tmp_path):
    def make(*events: ev.Event, preset: str = "ddp") -> RunRecord:
        record = RunRecord(id="20260101-000000-calm-fox", name="calm-fox", path=str(tmp_path))
        record.spec = make_spec(preset, epochs=9)
        fold_events(record, list(events))
        return record

    return make


def test_the_rate_is_that_of_the_epochs_before_the_profile(record_of):
    record = record_of(
        trained(1), trained(2), trained(3, num_samples=200, epoch_time_s=4.0, **SLOW),
        trained(4, epoch_time_s=20.0, **SLOW),
    )  # fmt: skip
    assert [row.epoch for row in record.steady_epochs] == [2]
    assert record.steady_samples_per_s == 100


def test_an_epoch_with_recorded_steps_has_no_time_of_its_own(record_of):
    record = record_of(trained(1), trained(2, num_profiled_steps=5, **SLOW), trained(3, **SLOW))
    assert [row.whole_time_s for row in record.epochs] == [10, None, 10]
    cells = run_view(record, None).epochs
    assert [line[1] for line in cells] == ["10.0 s", "–", "10.0 s"]
    assert [line[3] for line in cells] == ["warm-up", "profiled", "profiled"]


def test_without_another_epoch_the_reason_is_the_profile(record_of):
    record = record_of(trained(1), trained(2, **SLOW))
    baseline = record_of(trained(1), trained(2))
    baseline.spec = baseline_of(record.spec)
    measured = speedup(record, baseline)
    assert measured.value is None
    assert "profiler" in measured.reason
    fast = record_of(trained(1), trained(2), trained(3, **SLOW))
    assert speedup(fast, baseline).value == 1


def test_profiling_makes_no_other_baseline(make_spec):
    spec = make_spec("ddp")
    profiled = msgspec.structs.replace(spec, profile_steps=5)
    assert baseline_of(profiled) == baseline_of(spec)
    with_handicap = make_spec("ddp", training={"find_unused_parameters": True})
    assert scaling_of(with_handicap, baseline_of(spec)) == "weak"


def test_the_step_is_that_of_windows_without_the_profiler(record_of):
    record = record_of(window(5), window(10, step_ms=900, profiled=True), window(15, step_ms=100))
    step = run_view(record, None).step
    assert step is not None
    assert step.total == "100.0 ms"
    assert [window.step for window in record.clean_windows] == [5]


def test_the_newest_traces_count(record_of):
    record = record_of(
        ev.Profiled(step=5, num_steps=2, files=("trace/rank0.json.gz", "trace/rank1.json.gz")),
        ev.Profiled(step=9, num_steps=3, files=("trace/rank1.json.gz",)),
        ev.DdpReported(epoch=1, step=5), ev.DdpReported(epoch=2, step=9, bucket_bytes=(4,)),
    )  # fmt: skip
    assert record.traces == ("trace/rank1.json.gz",)
    assert record.ddp.bucket_bytes == (4,)
