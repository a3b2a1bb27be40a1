"""Events reach the trackers, and a tracker that fails costs one warning."""

from __future__ import annotations

import pytest
from accelerate import PartialState
from accelerate.tracking import LOGGER_TYPE_TO_CLASS, GeneralTracker
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from ringside import events as ev
from ringside.errors import SpecError
from ringside.rundir import create_run_dir
from ringside.spec import Observed
from ringside.trackers import PACKAGES, check_trackers
from training.trackers import TrackedWriter, make_writer, scalars


@pytest.fixture(autouse=True)
def _state():
    PartialState(cpu=True)


@pytest.fixture
def run(root):
    return create_run_dir(root)


@pytest.fixture
def spec_with(make_spec):
    return lambda *trackers: make_spec("single", training={"trackers": trackers})


def started() -> ev.RunStarted:
    observed = Observed(
        num_processes=1, strategy="single", mixed_precision="no", backend=None, device="cpu",
        device_name="cpu", num_parameters=10,
    )  # fmt: skip
    return ev.RunStarted(
        observed=observed, num_train=100, num_val=10, num_classes=2, task="multi_label",
        data_fingerprint="f", data_title="T", steps_per_epoch=10, learning_rate=0.1,
    )  # fmt: skip


def window(step: int) -> ev.WindowTimed:
    return ev.WindowTimed(
        epoch=1, step=step, num_steps=5, samples_per_s=100.0, train_loss=1 / step,
        learning_rate=0.1, step_ms=10.0, data_ms=1.0, forward_ms=2.0, backward_ms=3.0,
        optimizer_ms=4.0, step_ms_min=9.0, data_ms_min=0.5,
    )  # fmt: skip


def evaluated(epoch: int) -> ev.Evaluated:
    return ev.Evaluated(
        epoch=epoch, num_evaluated=10, evaluation_time_s=1.0, val_loss=0.25, auc_macro=0.75,
        num_auc_classes=2, num_classes=2, f1_macro=None, f1_micro=0.5, map_macro=0.5,
    )  # fmt: skip


class Recorder(GeneralTracker):
    """Keeps what it is given; `fails_at` names the call that raises."""

    name, requires_logging_directory = "recorder", False
    fails_at: str | None = None
    calls: list[tuple[str, object]]

    def __init__(self, project: str) -> None:
        super().__init__()
        Recorder.calls = []

    def _note(self, call: str, value: object) -> None:
        Recorder.calls.append((call, value))
        if call == Recorder.fails_at:
            raise ConnectionError("no route to the server\nand more")

    tracker = property(lambda self: None)

    def start(self) -> None:
        self._note("start", None)

    def store_init_configuration(self, values: dict) -> None:
        self._note("configuration", values)

    def log(self, values: dict, step: int | None = None, **_: object) -> None:
        self._note("log", (step, values))

    def finish(self) -> None:
        self._note("finish", None)


@pytest.fixture
def recorder(monkeypatch):
    monkeypatch.setitem(LOGGER_TYPE_TO_CLASS, "recorder", Recorder)
    monkeypatch.setitem(PACKAGES, "recorder", ("pytest",))
    monkeypatch.setattr(Recorder, "fails_at", None)
    return Recorder


def test_the_names_are_those_of_accelerate():
    assert set(PACKAGES) == set(LOGGER_TYPE_TO_CLASS)


def test_tensorboard_gets_the_numbers_at_their_steps(run, spec_with):
    writer = make_writer(run, spec_with("tensorboard"), rank=0)
    for event in (started(), window(5), window(10), evaluated(1)):
        writer.write(event)
    writer.close()
    board = EventAccumulator(str(run.trackers / run.id)).Reload()
    loss = [(scalar.step, scalar.value) for scalar in board.Scalars("train/train_loss")]
    assert loss == [(5, pytest.approx(0.2)), (10, pytest.approx(0.1))]
    (auc,) = board.Scalars("val/auc_macro")
    assert (auc.step, auc.value) == (10, pytest.approx(0.75))  # the end of the epoch
    assert "val/f1_macro" not in board.Tags()["scalars"]  # undefined is no number
    kinds = [type(event) for event in ev.decode_lines(run.events.read_bytes())]
    assert kinds == [ev.RunStarted, ev.WindowTimed, ev.WindowTimed, ev.Evaluated]


def test_a_tracker_knows_the_run_and_is_finished(run, spec_with, recorder):
    writer = make_writer(run, spec_with("recorder", "recorder"), rank=0)
    writer.write(ev.PhaseStarted(phase="train"))
    writer.write(window(5))
    writer.close()
    assert [call for call, _ in recorder.calls] == ["start", "configuration", "log", "finish"]
    assert recorder.calls[1][1]["run"] == run.id
    step, values = recorder.calls[2][1]
    assert step == 5
    assert values == scalars(window(5))
    assert "train/step" not in values


@pytest.mark.parametrize("fails_at", ["start", "configuration", "log", "finish"])
def test_a_failing_tracker_is_one_warning_and_training_goes_on(
    fails_at, run, spec_with, recorder, monkeypatch
):
    monkeypatch.setattr(recorder, "fails_at", fails_at)
    writer = make_writer(run, spec_with("recorder"), rank=0)
    for step in (5, 10, 15):
        writer.write(window(step))
    writer.close()
    found = ev.decode_lines(run.events.read_bytes())
    warnings = [event for event in found if isinstance(event, ev.Warned)]
    assert [event.step for event in found if isinstance(event, ev.WindowTimed)] == [5, 10, 15]
    assert [warning.code for warning in warnings] == ["tracker"]
    assert "ConnectionError: no route to the server)" in warnings[0].message
    assert sum(call == fails_at for call, _ in recorder.calls) == 1


def test_only_rank_0_has_trackers_and_without_any_nothing_is_made(run, spec_with):
    assert isinstance(make_writer(run, spec_with("tensorboard"), rank=1), ev.NullWriter)
    writer = make_writer(run, spec_with(), rank=0)
    assert not isinstance(writer, TrackedWriter)
    writer.close()
    assert not run.trackers.exists()


@pytest.mark.parametrize("rank", [0, 1])
def test_an_unknown_tracker_is_refused_with_the_known_ones(rank, run, spec_with):
    with pytest.raises(SpecError, match=r"no tracker 'tensorbord'\. Known: aim, .*tensorboard"):
        make_writer(run, spec_with("tensorbord"), rank=rank)


def test_a_tracker_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setitem(PACKAGES, "wandb", ("no_such_package",))
    with pytest.raises(SpecError, match=r"needs the package no_such_package.*installed: .*tensorb"):
        check_trackers(["wandb"])
