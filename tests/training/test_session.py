"""Runs in this process, stopped where it is hardest, and resumed; checkpoints that do not fit."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file, save_file

from ringside import events as ev
from ringside.checkpoints import checksums_of
from ringside.errors import RingsideError, RunDirError, SetupError
from ringside.hardware import Hardware
from ringside.launch.verdict import judge
from ringside.marks import read_marks
from ringside.request import continue_run
from ringside.run import fold_run
from ringside.rundir import RunDir, create_run_dir
from ringside.spec import DataSpec, RunSpec
from training import control as exchanges
from training.control import Control
from training.engine import Engine
from training.evaluation import Evaluator
from training.profiling import Profiling
from training.session import Session

EPOCHS, STEPS = 2, 5
FILES = ("model.safetensors", "training.pt")


def session_of(spec: RunSpec, root: Path) -> Session:
    AcceleratorState._reset_state(reset_partial_state=True)
    run = create_run_dir(root)
    run.write(run.spec, spec)
    control = Control(0, 1)
    control.run = run
    return Session(Engine(spec), run, control)


def run_here(spec: RunSpec, root: Path) -> RunDir:
    session = session_of(spec, root)
    assert session.run() == "completed"
    return session.run_dir


def events_of(run: RunDir, kind: type[ev.Event]) -> list:
    lines = ev.decode_lines(run.events.read_bytes())
    return [event for event in lines if isinstance(event, kind)]


def goes_on(run: RunDir) -> RunSpec:
    return continue_run(run, Hardware(num_cores=2))


@pytest.fixture
def spec(make_spec) -> RunSpec:
    spec = make_spec("single", micro_batch=128, epochs=EPOCHS, model="test_resnet")
    return msgspec.structs.replace(spec, data=DataSpec(source="products", profile="ci"))


@pytest.fixture
def stopped(spec, root, monkeypatch):
    """`stopped(ask, epoch)`: a run that was asked to stop, by `ask`, in this epoch."""

    def run(ask, epoch: int) -> RunDir:
        session = session_of(spec, root)
        with monkeypatch.context() as patch:
            ask(patch, session.run_dir, epoch)
            assert session.run() == "stopped"
        return session.run_dir

    return run


def at_the_last_step(patch: pytest.MonkeyPatch, run: RunDir, epoch: int) -> None:
    """The ranks look after each step, and find the request after the last one of the epoch."""
    follow = Engine.follow_weights

    def follow_and_ask(self: Engine, step: int) -> None:
        follow(self, step)
        if step == epoch * STEPS:
            run.request("stop")

    patch.setattr(Engine, "follow_weights", follow_and_ask)
    patch.setattr(exchanges, "PULSE_S", 0.0)


def in_the_evaluation(patch: pytest.MonkeyPatch, run: RunDir, epoch: int) -> None:
    evaluate = Evaluator.evaluate

    def ask_and_evaluate(self: Evaluator, number: int) -> ev.Evaluated | None:
        if number == epoch:
            run.request("stop")
        return evaluate(self, number)

    patch.setattr(Evaluator, "evaluate", ask_and_evaluate)


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Callable[..., Path]:
    """`kept(name, make)`: the folder that `make(parent)` leaves, which is called once."""
    parent, found = tmp_path_factory.mktemp("kept"), {}

    def get(name: str, make: Callable[[Path], Path]) -> Path:
        if name not in found:
            found[name] = make(parent)
        return found[name]

    return get


@pytest.fixture
def uninterrupted(kept, spec) -> RunDir:
    """Both epochs in one run; to be read only."""
    return RunDir(kept("uninterrupted", lambda parent: run_here(spec, parent).path))


@pytest.mark.parametrize("epoch", [1, EPOCHS])
@pytest.mark.parametrize("ask", [at_the_last_step, in_the_evaluation])
def test_a_stopped_epoch_is_trained_once_and_scored_by_the_resumed_run(
    ask, epoch, uninterrupted, root, stopped
):
    expected = {row.epoch: row for row in fold_run(uninterrupted).epochs}
    first = stopped(ask, epoch)
    before = fold_run(first)
    assert [row.epoch for row in before.epochs] == list(range(1, epoch + 1))
    assert before.epochs[-1].train_loss == pytest.approx(expected[epoch].train_loss, rel=1e-6)
    assert before.epochs[-1].num_evaluated is None
    assert (before.stop_agreed.epoch, before.stop_agreed.step) == (epoch, epoch * STEPS)
    second = run_here(goes_on(first), root)
    rows = fold_run(second).epochs
    assert [(row.epoch, row.carried) for row in rows] == [
        (number, number == epoch) for number in range(epoch, EPOCHS + 1)
    ]
    for row in rows:
        assert row.num_evaluated == expected[row.epoch].num_evaluated == 320
        assert row.auc_macro == expected[row.epoch].auc_macro
        assert row.val_loss == expected[row.epoch].val_loss
    with pytest.raises(RingsideError, match="has trained all of its 2 epochs"):
        goes_on(second)


def test_an_epoch_of_the_run_before_is_no_warm_up_of_this_one(stopped, root):
    """The first epoch that this process trains is."""
    spec = msgspec.structs.replace(goes_on(stopped(in_the_evaluation, 1)), epochs=4)
    record = fold_run(run_here(spec, root))
    assert [row.epoch for row in record.epochs] == [1, 2, 3, 4]
    assert [row.epoch for row in record.steady_epochs] == [3, 4]
    seconds = sum(row.epoch_time_s for row in record.epochs[2:])
    assert record.steady_samples_per_s == pytest.approx(2 * 640 / seconds)


# --- a checkpoint that does not fit -----------------------------------------------------------


@pytest.fixture
def checkpoint(kept, stopped, tmp_path) -> Path:
    """Of a run that was stopped after its first epoch was trained; a copy for each test."""
    last = kept("stopped", lambda _: stopped(in_the_evaluation, 1).checkpoints / "last")
    return Path(shutil.copytree(last, tmp_path / "checkpoint"))


def resume_from(folder: Path, spec: RunSpec, root: Path) -> Session:
    return session_of(msgspec.structs.replace(spec, resume_from=str(folder)), root)


def alter_about(folder: Path, **fields: object) -> None:
    about = msgspec.json.decode((folder / "about.json").read_bytes())
    (folder / "about.json").write_bytes(msgspec.json.encode({**about, **fields}))


def test_other_classes_are_refused_and_the_first_are_named(checkpoint, spec, root):
    """Also those of equal number: the outputs would silently mean something else."""
    about = msgspec.json.decode((checkpoint / "about.json").read_bytes())
    a, b, *others = about["classes"]
    for classes, words in (
        ([b, a, *others], f"class 1 was '{b}', now '{a}'; class 2 was '{a}', now '{b}'. Open"),
        ([a, b, *others, "x"], "class 17, 'x', is gone. Open"),
        ([a, b, *others[:-1]], f"class 16, '{others[-1]}', is new. Open"),
        ([f"{name}s" for name in about["classes"]], "and 13 more"),
    ):
        alter_about(checkpoint, classes=classes)
        session = resume_from(checkpoint, spec, root)
        with pytest.raises(SetupError, match="trained for other classes") as caught:
            session.run()
        assert words in str(caught.value)
        assert events_of(session.run_dir, ev.RunStarted) == []
    alter_about(checkpoint, classes=about["classes"], task="single_label")
    with pytest.raises(SetupError, match="task single_label and the data is multi_label"):
        resume_from(checkpoint, spec, root).run()


def resume_warnings(run: RunDir) -> list[str]:
    return [event.message for event in events_of(run, ev.Warned) if event.code == "resume"]


def test_other_pictures_of_the_same_classes_are_a_warning(checkpoint, spec, root):
    session = resume_from(checkpoint, spec, root)
    session.run()
    assert resume_warnings(session.run_dir) == []
    alter_about(checkpoint, data_fingerprint="before")
    session = resume_from(checkpoint, spec, root)
    session.run()
    (warning,) = resume_warnings(session.run_dir)
    assert warning.startswith("Not as before: content of the data: before, now ")


def damages(content: bytes) -> list[bytes]:
    """Nothing, the beginning, and random bytes in the places that are read first and last."""
    found = [b"", b"half", content[: len(content) // 2], content[:-1]]
    dice = random.Random(0)
    for _ in range(4):
        broken = bytearray(content)
        for place in (*range(8), *(-1 - i for i in range(64))):
            broken[place] = dice.randrange(256)
        found.append(bytes(broken))
    return [*found, dice.randbytes(1000)]


@pytest.mark.parametrize("name", [*FILES, "thresholds.json", "classes.json"])
def test_a_byte_of_another_value_is_refused(checkpoint, spec, root, name):
    """safetensors and torch read it: the length is right and the places that they look at are."""
    content = bytearray((checkpoint / name).read_bytes())
    content[len(content) // 2] ^= 1
    (checkpoint / name).write_bytes(content)
    with pytest.raises(RunDirError, match=f"cannot be resumed from: {name} is damaged"):
        resume_from(checkpoint, spec, root).run()


def test_a_damaged_checkpoint_is_one_sentence(checkpoint, spec, root):
    alter_about(checkpoint, checksums={})  # as one that was written before there were any
    for name in FILES:
        content = (checkpoint / name).read_bytes()
        for damage in damages(content):
            (checkpoint / name).write_bytes(damage)
            with pytest.raises(RunDirError, match=rf"cannot be resumed from: {name} cannot be"):
                resume_from(checkpoint, spec, root).run()
        (checkpoint / name).unlink()
        with pytest.raises(RunDirError, match=f"{name} is missing"):
            resume_from(checkpoint, spec, root).run()
        (checkpoint / name).write_bytes(content)
    torch.save({"progress": {"epoch": "two"}}, checkpoint / "training.pt")
    with pytest.raises(RunDirError, match=r"training\.pt cannot be read"):
        resume_from(checkpoint, spec, root).run()
    (checkpoint / "about.json").write_text("{")
    with pytest.raises(RunDirError, match="does not describe a model"):
        resume_from(checkpoint, spec, root).run()


def test_weights_of_another_model_are_one_sentence(checkpoint, spec, root):
    weights = load_file(checkpoint / "model.safetensors")
    save_file(weights | {"fc.bias": torch.zeros(3)}, checkpoint / "model.safetensors")
    alter_about(checkpoint, checksums=checksums_of(checkpoint))
    with pytest.raises(RunDirError, match=r"its fc\.bias has shape \[3\] and .* \[16\]"):
        resume_from(checkpoint, spec, root).run()


# --- compiling --------------------------------------------------------------------------------


def test_the_step_that_compiles_is_a_phase_of_its_own(spec, root, monkeypatch):
    """Eager stands in for the compiler: what is marked does not depend on how long it takes."""
    settings = msgspec.structs.replace(spec.training, compile=True)
    session = session_of(msgspec.structs.replace(spec, training=settings), root)
    mark, run = session.control.mark, session.run_dir
    mark.keep(run.ranks / "rank0.mark")
    follow, phases = Engine.follow_weights, []

    def look(self: Engine, step: int) -> None:
        follow(self, step)
        (seen,) = read_marks(run)
        phases.append((seen.epoch, seen.step, seen.phase))

    monkeypatch.setattr(Engine, "follow_weights", look)
    monkeypatch.setattr(Engine, "_compiled", lambda _, m: torch.compile(m, backend="eager"))
    session.run()
    assert phases == [(1, 1, "compile")] + [
        (1 + step // STEPS, step + 1, "train") for step in range(1, EPOCHS * STEPS)
    ]
    told = [(event.phase, event.epoch) for event in events_of(run, ev.PhaseStarted)]
    assert told == [
        ("data", None), ("setup", None), ("compile", 1), ("train", 1), ("evaluate", 1), ("save", 1),
        ("train", 2), ("evaluate", 2), ("save", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(("world", "has_left"), [(1, False), (2, True)])
def test_a_profile_for_which_memory_is_too_small_leaves_the_run_completed(
    spec, root, monkeypatch, world, has_left
):
    """Where there are other ranks, this one has to end, or they would wait for it."""

    def fails(self: Profiling, _stream: object) -> None:
        self.control.world = world
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(Profiling, "_step_beside", fails)
    session = session_of(msgspec.structs.replace(spec, epochs=1, profile_steps=2), root)
    assert session.run() == "completed"
    assert session.has_left == has_left
    (note,) = [one for one in events_of(session.run_dir, ev.Warned) if one.code == "profile"]
    assert "The GPU ran out of memory" in note.message
    assert "finished and saved" in note.message
    (finished,) = events_of(session.run_dir, ev.RunFinished)
    assert finished.reason == "completed"
    assert events_of(session.run_dir, ev.Profiled) == []
    assert judge(session.run_dir, 1).state == "completed"
