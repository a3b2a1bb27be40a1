"""Losses against closed forms and torch's own, and always in float32."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight

from ringside.errors import SpecError
from ringside.spec import TrainingSettings
from training.losses import make_loss, positive_weights, training_loss

CPU = torch.device("cpu")


@pytest.fixture
def logits():
    return torch.randn(40, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3


@pytest.fixture
def labels():
    rng = np.random.default_rng(2)
    return (rng.random((40, 6)) < [0.1, 0.2, 0.3, 0.5, 0.7, 0.9]).astype(np.uint8)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("cap", [None, 3.0])
def test_the_multi_label_loss_is_its_formula(logits, labels, smoothing, cap):
    settings = TrainingSettings(label_smoothing=smoothing, pos_weight_cap=cap)
    loss = training_loss("multi_label", settings, labels, CPU)
    smoothed = labels * (1 - smoothing) + smoothing / 2
    weight = 1.0
    if cap is not None:
        weight = np.minimum((1 - labels.mean(axis=0)) / labels.mean(axis=0), cap)
    probability = 1 / (1 + np.exp(-logits.numpy()))
    positive = weight * smoothed * np.log(probability)
    expected = -(positive + (1 - smoothed) * np.log(1 - probability)).mean()
    assert float(loss(logits, torch.from_numpy(labels).float())) == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_one_class_is_torchs(logits, smoothing):
    classes = torch.arange(40) % 6
    targets = torch.nn.functional.one_hot(classes, 6)
    settings = TrainingSettings(label_smoothing=smoothing)
    loss = training_loss("single_label", settings, targets.numpy(), CPU)
    theirs = torch.nn.CrossEntropyLoss(label_smoothing=smoothing)(logits, classes)
    assert float(loss(logits, targets.float())) == pytest.approx(float(theirs), rel=1e-6)


def test_a_mixture_of_two_pictures_counts_both_classes(logits):
    one, other = torch.eye(6)[torch.arange(40) % 6], torch.eye(6)[torch.arange(40) % 5]
    loss = make_loss("single_label")
    mixed = float(loss(logits, 0.3 * one + 0.7 * other))
    parts = 0.3 * float(loss(logits, one)) + 0.7 * float(loss(logits, other))
    assert mixed == pytest.approx(parts, rel=1e-5)


@pytest.mark.parametrize("task", ["multi_label", "single_label"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits_are_summed_in_float32(task, dtype):
    """1,000 classes: a sum in float16 would be off in the third digit."""
    generator = torch.Generator().manual_seed(3)
    half = (torch.randn(64, 1000, generator=generator) * 8).to(dtype)
    targets = torch.eye(1000)[torch.arange(64)]
    loss = make_loss(task)(half, targets)
    assert loss.dtype == torch.float32
    exact = make_loss(task)(half.float(), targets)
    assert float(loss) == float(exact)


def test_positives_weigh_what_balanced_classes_would(labels):
    """scikit-learn's balanced weights of 1 and 0 have the same ratio."""
    weights = positive_weights(labels, cap=1000)
    assert weights.dtype == torch.float32
    for column, weight in zip(labels.T, weights.tolist(), strict=True):
        zero, one = compute_class_weight("balanced", classes=np.array([0, 1]), y=column)
        assert weight == pytest.approx(one / zero, rel=1e-6)


def test_labels_that_all_or_none_have_stay_finite():
    targets = np.zeros((100, 3), np.uint8)
    targets[:, 1] = 1
    targets[:1, 2] = 1
    assert positive_weights(targets, cap=20).tolist() == pytest.approx([20, 1 / 100, 20])
    assert positive_weights(targets, cap=500).tolist() == pytest.approx([100, 1 / 100, 99])


def test_weighing_labels_of_one_class_is_refused():
    settings = TrainingSettings(pos_weight_cap=5)
    with pytest.raises(SpecError, match=r"pos_weight_cap 5 .* one class each"):
        training_loss("single_label", settings, np.eye(3, dtype=np.uint8), CPU)
