"""The gate's answer: false alarms, power, and what it says of classes."""

from __future__ import annotations

import math
from collections import Counter

import msgspec
import numpy as np
import pytest

from app.views.answers import answer_notes, answer_sentence, needed_words, rounded_up
from ringside.compare.answer import answer_from
from ringside.compare.power import Needed
from ringside.compare.sides import Side
from ringside.run import RunRecord
from ringside.scores import Resampling, paired_differences
from ringside.scores.crossed import crossed_scores

REPETITIONS = 100
FIVE_PERCENT = 0.05 + 3 * math.sqrt(0.05 * 0.95 / REPETITIONS)


@pytest.fixture
def side(make_spec, tmp_path):
    def make(seeds):
        return Side(
            runs=tuple(
                RunRecord(id=f"run-{n}", name=f"{n}", path=str(tmp_path), spec=make_spec(seed=n))
                for n in seeds
            )
        )

    return make


def models(rng, targets, k, *, seed_sd=0.0, loss=0.0, lost_class=None):
    """k models that see a class through noise; part of the noise is the image's, for all models."""
    image = rng.normal(0, 0.8, targets.shape)
    sides = []
    for side in range(2):
        for _ in range(k):
            skill = np.full(targets.shape[1], 1.8 + rng.normal(0, seed_sd) - side * loss)
            if side and lost_class is not None:
                skill[lost_class] -= 1.5
            z = (targets - 0.5) * skill + image + rng.normal(0, 0.5, targets.shape)
            sides.append((1 / (1 + np.exp(-z))).astype(np.float32))
    return sides


def judge(side, rng, k, *, n=200, classes=4, share=0.3, paired=True, **plan):
    targets = (rng.random((n, classes)) < share).astype(np.uint8)
    crossed = crossed_scores(models(rng, targets, k, **plan), targets, resampling=Resampling(150))
    seeds = range(k), range(k) if paired else range(k, 2 * k)
    supports = targets.sum(axis=0).tolist()
    return answer_from(crossed, side(seeds[0]), side(seeds[1]), supports=supports)


def verdicts(side, k, **plan):
    rng = np.random.default_rng(k)
    found = Counter(judge(side, rng, k, **plan).verdict for _ in range(REPETITIONS))
    return {name: count / REPETITIONS for name, count in found.items()}


@pytest.mark.parametrize(
    ("k", "plan"),
    [
        (1, {}),
        (3, {"seed_sd": 0.2}),
        (3, {"seed_sd": 0.2, "paired": False}),
        (1, {"n": 250, "classes": 8, "share": 0.1}),
    ],
)
def test_a_pair_without_a_difference_is_called_worse_in_five_percent_at_most(side, k, plan):
    assert verdicts(side, k, **plan).get("worse", 0.0) <= FIVE_PERCENT


def test_images_alone_would_find_losses_where_seeds_differ(side):
    """What the spread between seeds is for: one seed a side takes it for a loss, or a gain."""
    assert verdicts(side, 1, seed_sd=0.3).get("worse", 0.0) > FIVE_PERCENT
    assert verdicts(side, 3, seed_sd=0.3).get("worse", 0.0) <= FIVE_PERCENT


@pytest.mark.parametrize(("k", "plan"), [(1, {"loss": 0.5}), (4, {"loss": 0.5, "seed_sd": 0.1})])
def test_a_planted_loss_is_found(side, k, plan):
    assert verdicts(side, k, **plan).get("worse", 0.0) > 0.9


def test_one_class_that_fell_is_found_and_named(side):
    found = [
        judge(side, np.random.default_rng(n), 1, n=800, classes=8, lost_class=5) for n in range(10)
    ]
    assert sum(answer.verdict == "worse" for answer in found) >= 9
    assert Counter(answer.lost_classes[0].name for answer in found)["5"] >= 9
    assert found[0].num_class_tests == 24
    assert "5 (" in answer_sentence(found[0])


def test_the_limits_of_one_seed_are_those_of_the_paired_bootstrap(side):
    """Which takes percentiles of the same resamples; here the standard deviation does."""
    rng = np.random.default_rng(8)
    targets = (rng.random((400, 4)) < 0.3).astype(np.uint8)
    a, b = models(rng, targets, 1, loss=0.3)
    answer = answer_from(crossed_scores([a, b], targets), side([0]), side([0]), supports=[99] * 4)
    wanted = paired_differences(a, b, targets).means
    for one in answer.scores:
        interval = wanted[one.metric]
        assert one.delta == pytest.approx(interval.delta, abs=1e-12)
        width = interval.high - interval.low
        assert one.low == pytest.approx(interval.low, abs=0.1 * width)
        assert one.high == pytest.approx(interval.high, abs=0.1 * width)


def test_equal_predictions_are_the_same_over_many_images(side):
    rng = np.random.default_rng(9)
    targets = (rng.random((700, 3)) < 0.3).astype(np.uint8)
    (a,) = models(rng, targets, 1)[:1]
    enough, few = (
        answer_from(
            crossed_scores([a[:n], a[:n]], targets[:n]), side([0]), side([0]), supports=[99] * 3
        )
        for n in (700, 300)
    )
    assert (enough.verdict, answer_sentence(enough)) == ("same", "same within ±0.000")
    assert (few.verdict, few.scores[0].p_adjusted) == ("not_enough_data", None)
    assert "600 would do" in answer_sentence(few)


def test_a_lone_seed_against_several_decides_nothing(side):
    rng = np.random.default_rng(10)
    targets = (rng.random((300, 3)) < 0.3).astype(np.uint8)
    crossed = crossed_scores(models(rng, targets, 2, loss=1.0)[:3], targets)
    answer = answer_from(crossed, side([0]), side([0, 1]), supports=[90] * 3)
    assert answer.verdict == "not_enough_data"
    assert "a single seed and the other 2" in answer_sentence(answer)


def test_what_would_tell_stands_in_the_sentence(side):
    answer = judge(side, np.random.default_rng(11), 2, seed_sd=0.1)
    assert (answer.verdict, answer.is_paired) == ("not_enough_data", True)
    wanted = msgspec.structs.replace(answer, needed=Needed(seeds=4, images=1834))
    sentence = answer_sentence(wanted)
    assert "4 more seeds on each side or 1,900 more validation images would tell" in sentence
    assert "compared seed by seed" in answer_notes(wanted)[0]
    assert needed_words(Needed(seeds=1)).startswith("1 more seed on each side would tell, more")
    assert "no reasonable number" in needed_words(Needed())
    assert [rounded_up(n) for n in (7, 99, 101, 1834, 20_001)] == [7, 99, 110, 1900, 21_000]
