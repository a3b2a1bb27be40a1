"""The quality gate: faster only counts when scores held, and the noise decides what held means."""

from __future__ import annotations

import pytest

from ringside.compare.gate import MIN_IMAGES, TOLERANCE, gate, speed_word, verdict_on
from ringside.scores import Interval


def interval(delta, low, high):
    return Interval(delta, low, high, 1000)


@pytest.mark.parametrize(
    ("delta", "low", "high", "verdict"),
    [
        (-0.021, -0.030, -0.012, "worse"),
        (-0.021, -0.050, 0.010, "undecided"),  # could be noise, could be a loss
        (-0.004, -0.0045, -0.002, "held"),  # surely lower, and within the tolerance
        (-0.0049, -0.008, -0.001, "undecided"),  # lower, perhaps beyond the tolerance
        (0.020, -0.010, 0.040, "undecided"),  # looks better; too few images to be sure
        (0.020, 0.010, 0.030, "held"),
        (0.0, 0.0, 0.0, "undecided"),  # nothing differs, nothing is known of the noise
        (-0.1, -0.1, -0.1, "undecided"),
        (-TOLERANCE, -TOLERANCE, 0.0, "held"),  # the tolerance itself is allowed
    ],
)
def test_the_interval_decides(delta, low, high, verdict):
    assert verdict_on(delta, interval(delta, low, high), 100) == verdict


@pytest.mark.parametrize(("low", "high"), [(-0.03, -0.01), (0.01, 0.03)])
def test_few_images_decide_nothing(low, high):
    delta = (low + high) / 2
    known = {"auc_macro": interval(delta, low, high)}
    few, enough = (
        gate({"auc_macro": delta}, known, num_images=n, rate_ratio=1.9, apart=[])
        for n in (MIN_IMAGES - 1, MIN_IMAGES)
    )
    assert few.verdict == "undecided"
    assert "only 99 images were compared" in few.reason
    assert (enough.verdict, enough.reason) == ("worse" if delta < 0 else "held", None)


def test_two_perfect_models_have_held_only_over_many_images():
    """What was seen on none of 600 images befalls at most 3 / 600 = 0.5 % of all."""
    known = {"auc_macro": interval(0.0, 0.0, 0.0)}
    few, enough = (
        gate({"auc_macro": 0.0}, known, num_images=n, rate_ratio=1.9, apart=[]) for n in (599, 600)
    )
    assert few.verdict == "undecided"
    assert "noise cannot be told" in few.reason
    assert (enough.verdict, enough.reason) == ("held", None)


def test_without_predictions_nobody_knows_the_noise():
    found = gate({"f1_macro": -0.02}, {}, num_images=0, rate_ratio=1.9, apart=[])
    assert (found.verdict, found.metric, found.speed) == ("unknown", "f1_macro", "faster")
    assert "the noise is not known" in found.reason


def test_the_worst_score_decides_and_is_named():
    deltas = {"auc_macro": 0.01, "f1_macro": -0.021, "map_macro": -0.03}
    intervals = {
        "auc_macro": interval(0.01, 0.005, 0.02),
        "f1_macro": interval(-0.021, -0.03, -0.01),
        "map_macro": interval(-0.03, -0.07, 0.01),
    }
    found = gate(deltas, intervals, num_images=300, rate_ratio=1.9, apart=[])
    assert (found.verdict, found.metric, found.tolerance) == ("worse", "f1_macro", 0.005)


def test_what_is_not_comparable_is_not_judged():
    found = gate({"auc_macro": -0.5}, {}, num_images=0, rate_ratio=None, apart=["model: a and b"])
    assert (found.verdict, found.speed, found.metric) == ("unknown", None, None)
    assert found.reason == "model: a and b"
    nothing = gate({"auc_macro": None}, {}, num_images=0, rate_ratio=1.0, apart=[])
    assert "no score yet" in nothing.reason


@pytest.mark.parametrize(
    ("ratio", "word"),
    [(1.9, "faster"), (1.05, "faster"), (1.04, "as_fast"), (0.96, "as_fast"), (0.95, "slower"),
     (None, None)],
)  # fmt: skip
def test_small_differences_of_speed_are_none(ratio, word):
    assert speed_word(ratio) == word
