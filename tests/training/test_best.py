"""Which epoch is the best, by every score that a preset can name, and when training has stalled."""

from __future__ import annotations

import math

import pytest

from ringside.errors import SetupError
from ringside.events import Evaluated
from training.best import Best, BestScore


def scores(epoch: int, **values: float | None) -> Evaluated:
    fields = {"val_loss": 0.5, "auc_macro": 0.7, "f1_macro": 0.4, "map_macro": 0.3, **values}
    return Evaluated(
        epoch=epoch, num_evaluated=10, evaluation_time_s=1.0, num_auc_classes=2, num_classes=2,
        f1_micro=0.5, **fields,
    )  # fmt: skip


def best_epochs(best: Best, values: list[float | None], name: str | None = None) -> list[int]:
    """The epochs that were the best so far when they came."""
    name = name or best.by
    rises = (best.rises(scores(epoch, **{name: value})) for epoch, value in enumerate(values, 1))
    return [epoch for epoch, rose in enumerate(rises, 1) if rose]


@pytest.mark.parametrize("by", ["auc_macro", "f1_macro", "map_macro", "accuracy"])
def test_a_score_has_to_rise_by_any_amount(by):
    best = Best(by, "single_label")
    assert best_epochs(best, [0.5, 0.5, 0.5 + 1e-9, 0.4]) == [1, 3]
    assert best.so_far == BestScore(by=by, value=0.5 + 1e-9, epoch=3)


def test_a_loss_has_to_fall():
    assert best_epochs(Best("val_loss", "multi_label"), [0.5, 0.6, 0.4, 0.4]) == [1, 3]


def test_the_loss_stands_in_where_the_score_is_undefined():
    best = Best("auc_macro", "multi_label")
    assert best.rises(scores(1, auc_macro=None, val_loss=0.5))
    assert not best.rises(scores(2, auc_macro=None, val_loss=0.6))
    assert best.so_far == BestScore(by="val_loss", value=0.5, epoch=1)
    assert best.rises(scores(3, auc_macro=0.1, val_loss=9.0))  # what was asked for goes first
    assert not best.rises(scores(4, auc_macro=None, val_loss=0.1))


@pytest.mark.parametrize("bad", [math.nan, math.inf, None])
def test_what_is_not_finite_is_never_the_best(bad):
    best = Best("val_loss", "multi_label")
    assert not best.rises(scores(1, val_loss=bad))
    assert best.rises(scores(2, val_loss=7.0))
    assert not best.rises(scores(3, val_loss=bad))


def test_accuracy_needs_one_class_per_image():
    with pytest.raises(SetupError, match="choose auc_macro"):
        Best("accuracy", "multi_label")


def test_training_stops_after_so_many_epochs_without_a_better_one():
    best = Best("auc_macro", "multi_label")
    found = []
    for epoch, value in enumerate([0.5, 0.7, 0.6, 0.71, 0.7, 0.71, 0.7], 1):
        best.rises(scores(epoch, auc_macro=value))
        found.append(best.why_stop(epoch, 3))
    assert found[:6] == [None] * 6
    assert found[6] == (
        "Training ends after epoch 7: auc_macro has not risen above 0.7100 of epoch 4 for 3 "
        "epochs (early_stop_epochs)."
    )
    assert best.why_stop(100, None) is None


def test_a_resumed_run_counts_on():
    best = Best("val_loss", "multi_label")
    best.so_far = BestScore(by="val_loss", value=0.3, epoch=4)
    assert not best.rises(scores(5, val_loss=0.4))
    assert best.why_stop(5, 2) is None
    assert "fallen below 0.3000 of epoch 4 for 2 epochs" in best.why_stop(6, 2)


def test_without_any_finite_score_patience_counts_from_the_start():
    best = Best("auc_macro", "multi_label")
    best.rises(scores(1, auc_macro=None, val_loss=math.nan))
    assert best.why_stop(1, 2) is None
    assert "no epoch has had a finite auc_macro" in best.why_stop(2, 2)
