"""Recorded steps: their marks, their place in an epoch, and that they change nothing."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from ringside.events import EpochTrained, Profiled, Warned, WindowTimed
from ringside.rundir import RunDir
from ringside.trace import analyse, read_traces
from training import profiling, recorder
from training.buffered import Buffered
from training.loop import Trainer
from training.resume import Progress
from training.weight_averaging import WeightAverager


@pytest.fixture
def run_dir(tmp_path) -> RunDir:
    run = RunDir(tmp_path / "100% of o'brien")
    run.path.mkdir()
    return run


@pytest.fixture
def trained(make_trainer, run_dir):
    """`trained(4, 9)`: an epoch of 10 steps; after those numbers somebody asks for `steps`.

    Requests are looked for after every step, as if each lasted a second.
    """

    def run(*asked_after: int, steps: int = 3, epochs: int = 1, micro_batch: int = 64, **fields):
        trainer = make_trainer(micro_batch=micro_batch, epochs=epochs, **fields)
        trainer.control.run = run_dir
        count = trainer.control.due

        def due() -> bool:
            if trainer.step in asked_after:
                run_dir.request("profile", steps=steps)
            count()
            return True

        trainer.control.due = due
        for epoch in range(1, epochs + 1):
            trainer.writer.write(trainer.train_epoch(epoch))
        return trainer

    return run


def of_kind(trainer: Trainer, kind: type) -> list:
    return [event for event in trainer.writer.written if isinstance(event, kind)]


def names_in(path: Path) -> Counter[str]:
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    return Counter(e["name"] for e in events if e.get("cat") == "user_annotation")


def weights(trainer: Trainer) -> list[torch.Tensor]:
    return [value.clone() for value in trainer.engine.plain.state_dict().values()]


def test_every_recorded_step_has_its_marks_and_the_reader_finds_them(trained, run_dir):
    trainer = trained(2, accumulation_steps=2, micro_batch=32)
    (event,) = of_kind(trainer, Profiled)
    assert (event.num_steps, event.step, event.files) == (3, 7, ("trace/rank0.json.gz",))
    names = names_in(run_dir.path / event.files[0])
    assert [name for name in names if name.startswith("ProfilerStep")] == [
        "ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3",
    ]  # fmt: skip
    assert {name: names[name] for name in ("data", "forward", "backward", "optimizer")} == {
        "data": 6, "forward": 6, "backward": 6, "optimizer": 3,
    }  # fmt: skip
    traces, faults = read_traces([run_dir.trace])
    (rank,) = analyse(traces).ranks
    assert (faults, rank.num_steps, rank.is_cpu_estimate) == ([], 3, True)
    assert rank.breakdown.data_idle_us > 0
    assert [path.name for path in run_dir.trace.iterdir()] == ["rank0.json.gz"]


def test_recorded_steps_train_like_any_other(trained):
    plain, recorded = trained(), trained(1)
    assert len(of_kind(recorded, Profiled)) == 1
    assert all(map(torch.equal, weights(plain), weights(recorded)))
    (before,), (after,) = of_kind(plain, EpochTrained), of_kind(recorded, EpochTrained)
    assert after.train_loss == before.train_loss
    assert after.num_optimizer_steps == before.num_optimizer_steps == 10


def test_recorded_steps_are_off_the_clock_and_say_so(trained, monkeypatch):
    """Half a second in every recorded step is no part of the time of the epoch."""
    enter = recorder.Recorder.enter

    def slow(self, part):
        enter(self, part)
        if self.is_recording and part == "optimizer":
            time.sleep(0.5)

    train_epoch, passed_s = Trainer.train_epoch, []

    def timed(self, epoch):
        begin = time.perf_counter()
        result = train_epoch(self, epoch)
        passed_s.append(time.perf_counter() - begin)
        return result

    monkeypatch.setattr(recorder.Recorder, "enter", slow)
    monkeypatch.setattr(Trainer, "train_epoch", timed)
    trainer = trained(2, epochs=2)
    first, second = of_kind(trainer, EpochTrained)
    assert (first.num_profiled_steps, first.num_samples) == (5, 5 * 64)
    assert (second.num_profiled_steps, second.num_samples) == (0, 10 * 64)
    assert first.profiled
    assert second.profiled
    assert passed_s[0] - first.epoch_time_s >= 0.5 * first.num_profiled_steps
    assert first.samples_per_s == pytest.approx(first.num_samples / first.epoch_time_s)
    windows = of_kind(trainer, WindowTimed)
    assert [(w.num_steps, w.step) for w in windows if w.profiled] == [(5, 7)]
    assert all(window.step_ms > 500 for window in windows if window.profiled)
    unrecorded_s = sum(w.step_ms * w.num_steps for w in windows if not w.profiled) / 1000
    assert unrecorded_s == pytest.approx(first.epoch_time_s + second.epoch_time_s, rel=0.05)
    assert sum(window.num_steps for window in windows) == 20
    assert first.data_ratio < 1
    assert [note.code for note in of_kind(trainer, Warned)] == ["profile"]


@pytest.mark.parametrize(
    ("asked_after", "recorded_until"),
    [((2,), [7]), ((2, 8), [7, 16]), ((6,), [16]), ((6, 8), [16]), ((12, 18), [17])],
    ids=["at once", "twice", "too late for the epoch", "twice too late", "and at the end"],
)
def test_a_request_waits_for_an_epoch_with_room(trained, asked_after, recorded_until):
    trainer = trained(*asked_after, epochs=2)
    assert [event.step for event in of_kind(trainer, Profiled)] == recorded_until
    assert trainer.profiling.asked == (3 if asked_after[-1] == 18 else 0)


def test_more_steps_than_an_epoch_has_are_cut_to_what_fits(trained):
    (event,) = of_kind(trained(1, steps=50), Profiled)
    assert (event.num_steps, event.step) == (7, 10)


def test_a_stop_goes_first(trained, run_dir):
    run_dir.requests.mkdir()
    run_dir.request("profile", steps=3)
    run_dir.request("stop")
    trainer = trained()
    assert of_kind(trainer, Profiled) == []
    assert trainer.step == 1


def test_after_training_nothing_changes_but_the_trace(trained, run_dir):
    trainer = trained()
    before, step = weights(trainer), trainer.step
    parameters = [parameter.clone() for parameter in trainer.engine.plain.parameters()]
    trainer.profiling.after_training(4)
    (event,) = of_kind(trainer, Profiled)
    assert (event.num_steps, event.after_training, event.step) == (4, True, step)
    assert trainer.step == step
    assert len(before) > len(parameters)
    assert all(map(torch.equal, parameters, trainer.engine.plain.parameters()))
    assert sum(n.startswith("ProfilerStep") for n in names_in(run_dir.trace / "rank0.json.gz")) == 4


def test_local_sgd_averages_among_recorded_steps_as_in_training(trained, monkeypatch):
    """Every third step. Two settle, two more are not recorded and three are: 11 to 17."""
    trainer = trained()
    averaged = []
    monkeypatch.setattr(WeightAverager, "average", lambda self: averaged.append(trainer.step + 1))
    trainer.engine.averager = WeightAverager(trainer.engine.plain, 1, 3)
    trainer.profiling.after_training(3)
    assert averaged == [12, 15]
    assert trainer.step == 10
    assert [event.step for event in of_kind(trainer, Profiled)] == [10]


def test_batches_that_lie_ready_are_taken_without_a_step(trained, monkeypatch):
    """Steps on them would hide a loader that is too slow, and beside steps it fills up again."""
    trainer = trained()
    monkeypatch.setattr(profiling, "buffered", lambda _: Buffered(6, 3))
    batches, taken = trainer.batches, []

    def watched():
        for batch in batches:
            taken.append(trainer.step)
            yield batch

    trainer.batches = type("Watched", (), {"__iter__": lambda _: watched()})()
    trainer.profiling.after_training(2)
    assert taken == [10] * 7 + [11, 12, 13, 14, 15]


@pytest.mark.parametrize(("first_step", "num_logged"), [(0, 0), (6, 6)])
def test_steps_that_ddp_logs_are_not_recorded(
    make_trainer, run_dir, monkeypatch, first_step, num_logged
):
    """It logs the first ten of a process; a resumed one has made only four when training ends."""
    monkeypatch.setattr(profiling, "is_logged", lambda _engine: True)
    trainer = make_trainer()
    trainer.control.run = run_dir
    trainer.take_up(Progress(epoch=1, step_in_epoch=first_step, samples_in_epoch=first_step * 64))
    trainer.train_epoch(1, first_step)
    begun_at = []
    begin = trainer.profiling.recorder.begin
    monkeypatch.setattr(
        trainer.profiling.recorder,
        "begin",
        lambda *given: (begun_at.append(trainer.step), begin(*given)),
    )
    trainer.profiling.after_training(2)
    assert begun_at == [10 + num_logged + 2]
    assert trainer.step == 10
    assert [event.num_steps for event in of_kind(trainer, Profiled)] == [2]


def test_settling_has_an_end(trained, monkeypatch):
    monkeypatch.setattr(profiling, "is_logged", lambda _engine: True)
    monkeypatch.setattr(profiling, "DDP_LOGGED_STEPS", 1_000_000)
    monkeypatch.setattr(profiling, "SETTLE_S", 0.5)
    trainer = trained()
    trainer.profiling.after_training(2)
    assert [event.num_steps for event in of_kind(trainer, Profiled)] == [2]


@pytest.mark.parametrize(
    ("micro_batch", "asked_after", "recorded_until"),
    [(32, 2, 15), (32, 12, 17), (64, 2, 7)],
    ids=["waits", "no longer logged", "no room to wait"],
)
def test_a_request_waits_until_ddp_logs_no_more(
    trained, monkeypatch, micro_batch, asked_after, recorded_until
):
    monkeypatch.setattr(profiling, "is_logged", lambda _engine: True)
    trainer = trained(asked_after, micro_batch=micro_batch)
    assert [event.step for event in of_kind(trainer, Profiled)] == [recorded_until]


def test_only_ddp_on_a_gpu_measures_for_its_log(make_trainer):
    assert not profiling.is_logged(make_trainer().engine)
    wrapped = object.__new__(DistributedDataParallel)
    for device, is_logged in (("cuda", True), ("cpu", False)):
        engine = SimpleNamespace(device=torch.device(device), model=wrapped)
        assert profiling.is_logged(engine) == is_logged


def test_a_second_profile_that_fails_leaves_no_trace_of_the_first(trained, run_dir, monkeypatch):
    """Else a rank's old trace would be read beside the new ones of the others."""
    trainer = trained(2)
    assert (run_dir.trace / "rank0.json.gz").is_file()

    def fails(*_arguments: object) -> None:
        raise RuntimeError("No room.")

    monkeypatch.setattr("torch.profiler.profile.export_chrome_trace", fails)
    trainer.profiling.after_training(2)
    assert len(of_kind(trainer, Profiled)) == 1
    assert not any(run_dir.trace.iterdir())


def test_what_was_asked_too_late_is_recorded_after_training(trained):
    trainer = trained(9)
    trainer.profiling.after_training(0)
    assert [event.num_steps for event in of_kind(trainer, Profiled)] == [3]


def test_large_steps_are_fewer(trained, monkeypatch):
    monkeypatch.setattr(recorder, "MAX_EVENTS", 1)
    (event,) = of_kind(trained(1), Profiled)
    assert event.num_steps == 1


@pytest.mark.parametrize("name", ["start", "export_chrome_trace"])
def test_a_profiler_that_fails_leaves_training_alone(trained, run_dir, monkeypatch, name):
    def fails(*_arguments: object) -> None:
        raise RuntimeError("CUPTI is taken.\nDetails")

    monkeypatch.setattr(f"torch.profiler.profile.{name}", fails)
    trainer = trained(1)
    assert of_kind(trainer, Profiled) == []
    assert "0 of 1 ranks" in of_kind(trainer, Warned)[0].message
    assert "CUPTI is taken)" in of_kind(trainer, Warned)[0].message
    assert trainer.step == 10
    assert not any(run_dir.trace.glob("*"))


def test_a_request_that_cannot_be_read_is_one_for_the_usual_number(trained, run_dir):
    run_dir.requests.mkdir()
    (run_dir.requests / "profile.json").write_text('{"steps": "many"}')
    (event,) = of_kind(trained(), Profiled)
    assert event.num_steps == 5
    assert not (run_dir.requests / "profile.json").exists()
