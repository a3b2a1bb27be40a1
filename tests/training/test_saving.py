"""What a run keeps of its evaluations, which checkpoint is the best, and how it goes on."""

from __future__ import annotations

import shutil
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from ringside.checkpoints import BestScore, read_about, read_thresholds
from ringside.class_scores import EpochClasses, read_class_scores
from ringside.events import CheckpointSaved, EpochTrained, Evaluated, Warned
from ringside.predictions import Predictions, read_predictions
from ringside.rundir import RunDir, create_run_dir
from ringside.scores import score
from training import saving
from training.resume import Progress

Usage = namedtuple("Usage", "total used free")
CLASSES = ("cat", "dog", "never")
TARGETS = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 0]], dtype=np.uint8)


@pytest.fixture
def make_saver(root, make_spec, monkeypatch):
    """`make_saver(best_by="val_loss")`: a saver of one rank, its events, and its run."""
    monkeypatch.setattr(saving, "training_state", lambda *_: {"optimizer": torch.zeros(10)})

    def make(rank: int = 0, **training: object):
        events: list[object] = []
        plain = nn.Linear(2, 3)
        engine = SimpleNamespace(
            spec=make_spec("single", training=training), rank=rank, world=1, plain=plain,
            model=plain, averager=None, pipeline=None, named_module=plain, num_replicas=1, ema=None,
            average_statistics=lambda: None,
        )  # fmt: skip
        data = SimpleNamespace(classes=CLASSES, task="multi_label", fingerprint="abc")
        writer = SimpleNamespace(write=events.append)
        return saving.Saver(engine, create_run_dir(root), None, writer, data), events

    return make


def evaluation(epoch: int, quality: float):
    """(event, predictions, classes) of a model that is right with `quality` from 0 to 1."""
    rng = np.random.default_rng(epoch)
    noise = rng.random(TARGETS.shape, dtype=np.float32)
    probabilities = np.float32(quality) * TARGETS + np.float32(1 - quality) * noise
    found = score(probabilities, TARGETS, CLASSES, "multi_label")
    event = Evaluated(
        epoch=epoch, num_evaluated=4, evaluation_time_s=1.0, val_loss=1 - quality,
        auc_macro=quality, num_auc_classes=2, num_classes=3, f1_macro=found.f1_macro,
        f1_micro=found.f1_micro, map_macro=found.map_macro,
    )  # fmt: skip
    classes = EpochClasses(
        epoch=epoch, task="multi_label", num_evaluated=4, threshold=0.5,
        classes=tuple(found.per_class),
    )  # fmt: skip
    return event, Predictions(epoch, "multi_label", probabilities, TARGETS), classes


def end_epoch(saver, epoch: int, quality: float) -> None:
    event, predictions, classes = evaluation(epoch, quality)
    is_best = saver.keep(event, predictions, classes)
    saver.epoch_end(Progress(epoch=epoch + 1, step=epoch), event, is_best=is_best)


def best_saved(events) -> list[int]:
    return [event.epoch - 1 for event in events if getattr(event, "best", False)]


def test_the_best_epoch_keeps_its_checkpoint_and_its_classes(make_saver):
    saver, events = make_saver()
    for epoch, quality in ((1, 0.2), (2, 0.9), (3, 0.5)):
        end_epoch(saver, epoch, quality)
    assert best_saved(events) == [1, 2]
    tables = read_class_scores(saver.run)
    assert (tables.last.epoch, tables.best.epoch) == (3, 2)
    assert tables.best == evaluation(2, 0.9)[2]
    assert read_predictions(saver.run).epoch == 3
    best = read_thresholds(saver.run.checkpoints / "best")
    assert (best.epoch, best.num_evaluated) == (2, 4)
    wanted = {one.name: one.threshold_tuned for one in tables.best.classes}
    assert best.thresholds == wanted
    assert wanted["never"] is None


def test_a_rank_without_predictions_decides_alike_and_writes_nothing(make_saver):
    saver, events = make_saver(rank=1)
    for epoch, quality in ((1, 0.2), (2, 0.9), (3, 0.5)):
        is_best = saver.keep(evaluation(epoch, quality)[0], None, None)
        assert is_best == (epoch < 3)
    assert saver.best.so_far == BestScore(by="auc_macro", value=0.9, epoch=2)
    assert not saver.run.class_scores.exists()
    assert events == []


def test_a_checkpoint_within_an_epoch_has_the_thresholds_of_the_one_before(make_saver):
    saver, _ = make_saver()
    saver.now(Progress(epoch=1, step_in_epoch=2, step=2))
    assert read_thresholds(saver.run.checkpoints / "last").num_evaluated == 0
    end_epoch(saver, 1, 0.5)
    saver.now(Progress(epoch=2, step_in_epoch=2, step=12))
    assert read_thresholds(saver.run.checkpoints / "last").epoch == 1


def test_a_resumed_run_knows_the_best_so_far(make_saver):
    first, _ = make_saver()
    end_epoch(first, 1, 0.9)
    end_epoch(first, 2, 0.4)
    second, events = make_saver()
    second.take_up(first.run.checkpoints / "last")
    assert second.best.so_far == BestScore(by="auc_macro", value=0.9, epoch=1)
    assert [event.path for event in events] == ["checkpoints/best"]
    shutil.rmtree(first.run.path)
    end_epoch(second, 3, 0.6)
    assert best_saved(events) == [1]  # the adopted one; 0.6 is no better
    tables = read_class_scores(second.run)
    assert (tables.last.epoch, tables.best.epoch) == (3, 1)
    assert read_thresholds(second.run.checkpoints / "best").epoch == 1
    end_epoch(second, 4, 0.95)
    assert best_saved(events) == [1, 4]


def test_the_description_tells_the_data_and_an_epoch_without_scores(make_saver):
    saver, _ = make_saver()
    trained = EpochTrained(
        epoch=1, epoch_time_s=1.0, epoch_time_s_min=1.0, num_samples=4, samples_per_s=4.0,
        num_optimizer_steps=1, train_loss=0.5,
    )  # fmt: skip
    saver.now(Progress(epoch=2, step=1, unevaluated=trained))
    about = read_about(saver.run.checkpoints / "last")
    assert (about.epoch, about.unevaluated, about.data_fingerprint) == (2, 1, "abc")
    end_epoch(saver, 1, 0.5)
    assert read_about(saver.run.checkpoints / "last").unevaluated is None


def test_a_best_by_another_score_does_not_count(make_saver):
    first, _ = make_saver()
    end_epoch(first, 1, 0.9)
    second, events = make_saver(best_by="map_macro")
    second.take_up(first.run.checkpoints / "last")
    assert second.best.so_far is None
    assert events == []


def test_a_full_disk_is_one_warning_until_there_is_space_again(make_saver, monkeypatch):
    saver, events = make_saver()
    end_epoch(saver, 1, 0.2)
    enough = shutil.disk_usage
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 500_000))
    for step in (2, 4):
        saver.now(Progress(epoch=2, step_in_epoch=step, step=step))
    warnings = [event for event in events if isinstance(event, Warned)]
    assert [warning.code for warning in warnings] == ["checkpoint"]
    assert "needs 1.0 MB and 0.5 MB are free" in warnings[0].message
    assert "The one before is kept and training goes on" in warnings[0].message
    assert read_thresholds(saver.run.checkpoints / "last").epoch == 1
    monkeypatch.setattr(shutil, "disk_usage", enough)
    saver.now(Progress(epoch=2, step_in_epoch=6, step=6))
    assert isinstance(events[-1], CheckpointSaved)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 500_000))
    saver.now(Progress(epoch=2, step_in_epoch=8, step=8))
    assert isinstance(events[-1], Warned)


def test_on_a_disk_that_is_full_from_the_start_no_checkpoint_is_said_to_be_kept(
    make_saver, monkeypatch
):
    saver, events = make_saver()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 500_000))
    saver.now(Progress(epoch=1, step_in_epoch=2, step=2))
    (warning,) = (event for event in events if isinstance(event, Warned))
    assert "There is none so far, and training goes on" in warning.message
    assert "is kept" not in warning.message


def test_class_scores_of_a_newer_ringside_or_damaged_are_none(make_saver):
    saver, _ = make_saver()
    end_epoch(saver, 1, 0.5)
    run = RunDir(saver.run.path)
    run.class_scores.write_bytes(run.class_scores.read_bytes().replace(b": 1,", b": 99,", 1))
    assert read_class_scores(run) is None
    run.class_scores.write_text("{")
    assert read_class_scores(run) is None
