"""Run directories made by hand: every state a page can meet, without starting a process."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from ringside import events as ev
from ringside.hardware import Hardware
from ringside.records import RankError, write_exit, write_owner
from ringside.rundir import RunDir
from ringside.spec import AccelerateSettings, DataSpec, Observed, RunSpec, TrainingSettings
from ringside.words import DEFAULT, speak
from tests.app.serving import free_port

IMAGES, STEPS = 640, 10


class Runs:
    """Writes run directories below `root`, each newer than the one before."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made = 0

    def add(
        self,
        name: str,
        *,
        preset: str = "ddp",
        epochs: int = 0,
        epoch_time_s: float = 2.0,
        auc: float = 0.8,
        ended: str | None = None,
        **changes: Any,
    ) -> RunDir:
        """A run with so many epochs behind it; without `ended` this test owns it, so it lives."""
        run = self._folder(name)
        run.write(run.spec, _spec(preset, **changes))
        write_owner(run, "supervisor")
        writer = ev.EventWriter(run.events)
        if epochs:
            writer.write(_started(preset))
        for epoch in range(1, epochs + 1):
            for event in _epoch(epoch, epoch_time_s, auc):
                writer.write(event)
        writer.close()
        if ended:
            write_exit(run, state=ended, reason=f"It is {ended}.", return_code=0)  # type: ignore[arg-type]
        return run

    def _folder(self, name: str) -> RunDir:
        self.made += 1
        run = RunDir(self.root / f"20260102-0304{self.made:02d}-{name}")
        for folder in (run.path, run.ranks, run.requests, run.logs, run.checkpoints):
            folder.mkdir(parents=True)
        return run


@pytest.fixture
def in_chinese() -> Iterator[None]:
    """The process speaks Chinese, as in a terminal that asks for it."""
    speak("zh")
    yield
    speak(DEFAULT)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server on a free port, with no run."""
    from app.page import open_server

    opened = open_server(runs_root=tmp_path_factory.mktemp("runs"), port=free_port())
    yield opened
    opened.close()


def fail(run: RunDir, sentence: str, *, rank: int = 1, user_error: bool = False) -> None:
    """What a failing rank and its supervisor leave behind."""
    error = RankError(
        rank=rank,
        t=time.time(),
        sentence=sentence,
        traceback="Traceback (most recent call last):\n  <here> {{x}} ${y}",
        user_error=user_error,
    )
    run.write(run.ranks / f"rank{rank}.error.json", error)
    write_exit(run, state="failed", reason=sentence, return_code=1)


def _spec(preset: str, **changes: Any) -> RunSpec:
    single = preset == "single"
    processes = 1 if single else 2
    values: dict[str, Any] = {
        "preset": preset,
        "accelerate": AccelerateSettings(
            distributed_type="NO" if single else "MULTI_GPU", num_processes=processes
        ),
        "training": TrainingSettings(),
        "data": DataSpec(source="products", profile="ci"),
        "model": "resnet10t",
        "epochs": 3,
        "global_batch": 32 * processes,
        "num_processes": processes,
        "device": "cpu",
    }
    return RunSpec(**(values | changes))


def _started(preset: str) -> ev.RunStarted:
    observed = Observed(
        num_processes=1 if preset == "single" else 2,
        strategy="single" if preset == "single" else "ddp",
        mixed_precision="no",
        backend=None if preset == "single" else "gloo",
        device="cpu",
        device_name="x86_64",
        num_parameters=4_930_000,
        reduced_bytes_per_step=19_720_000,
        versions={"torch": "2.14.1"},
    )
    return ev.RunStarted(
        observed=observed,
        num_train=IMAGES,
        num_val=320,
        num_classes=16,
        task="multi_label",
        data_fingerprint="same",
        data_title="Synthetic product pictures (ci)",
        synthetic=True,
        steps_per_epoch=STEPS,
        learning_rate=0.001,
    )


def _epoch(epoch: int, seconds: float, auc: float) -> list[ev.Event]:
    window = ev.WindowTimed(
        epoch=epoch,
        step=epoch * STEPS,
        num_steps=STEPS,
        samples_per_s=IMAGES / seconds,
        train_loss=0.5 / epoch,
        learning_rate=0.001,
        step_ms=100.0,
        data_ms=5.0,
        forward_ms=25.0,
        backward_ms=50.0,
        optimizer_ms=15.0,
        step_ms_min=99.0,
        data_ms_min=4.0,
    )
    trained = ev.EpochTrained(
        epoch=epoch,
        epoch_time_s=seconds,
        num_samples=IMAGES,
        samples_per_s=IMAGES / seconds,
        num_optimizer_steps=STEPS,
        train_loss=0.5 / epoch,
        epoch_time_s_min=seconds,
    )
    evaluated = ev.Evaluated(
        epoch=epoch,
        num_evaluated=320,
        evaluation_time_s=0.5,
        val_loss=0.4,
        auc_macro=auc,
        num_auc_classes=15,
        num_classes=16,
        undefined_classes=("rare",),
        f1_macro=0.5,
        f1_micro=0.6,
        map_macro=0.5,
    )
    return [ev.PhaseStarted(phase="train", epoch=epoch), window, trained, evaluated]


@pytest.fixture(autouse=True)
def _read_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test asks more often than a page."""
    monkeypatch.setattr("app.views.desk.FRESH_S", 0.0)


def text_of(html: str) -> str:
    """What a person reads of it."""
    return unescape(re.sub("<[^>]*>", "", html))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The warnings that a person would see."""
    import gradio as gr

    texts: list[str] = []
    monkeypatch.setattr(gr, "Warning", lambda html, **_: texts.append(text_of(html)))
    monkeypatch.setattr(gr, "Info", lambda text, **_: None)
    return texts


@pytest.fixture
def runs_root(tmp_path: Path) -> Path:
    """A folder for runs with a name that breaks careless quoting."""
    folder = tmp_path / 'Lea\'s "runs" äöü'
    folder.mkdir()
    return folder


@pytest.fixture
def runs(runs_root: Path) -> Runs:
    """Makes runs below `runs_root`."""
    return Runs(runs_root)


@pytest.fixture
def runs_at() -> Callable[[Path], Runs]:
    """Makes runs below any folder."""
    return Runs


@pytest.fixture
def failing() -> Any:
    """The function that lets a run fail."""
    return fail


@pytest.fixture
def hardware() -> Hardware:
    """Two CPU cores and no GPU."""
    return Hardware(num_cores=2, versions={"torch": "2.14.1+cu130", "accelerate": "1.15.0"})
