"""The variance over seeds and images, against data whose variance is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ringside.compare.multiple import holm
from ringside.compare.noise import Noise, noise_of
from ringside.compare.power import needed, resolves, variance_at
from ringside.scores.crossed import Resampled

SEED, SHARED, OWN = 0.02, 0.01, 0.015
"""Standard deviations of a difference: from seed to seed, of all images, of images by seed."""


def draw(rng, k, delta=0.0, *, paired=True, resamples=300):
    """Scores of `k` seeds a side as training and drawing images anew would give them."""
    side = SEED / math.sqrt(2), OWN / math.sqrt(2)
    seeds, own = (rng.normal(0, sd, 2 * k) for sd in side)
    measured = np.repeat([0.0, delta + rng.normal(0, SHARED)], k) + seeds + own
    again = rng.normal(0, side[1], (resamples, 2 * k)) + measured
    again[:, k:] += rng.normal(0, SHARED, (resamples, 1))
    return noise_of(Resampled(measured, again), k, paired=paired)


@pytest.mark.parametrize("paired", [True, False])
def test_the_variance_is_that_of_repetitions(paired):
    """Unbiased: the mean estimate against what the difference really varies by."""
    rng, k = np.random.default_rng(0), 4
    found = [draw(rng, k, paired=paired) for _ in range(1500)]
    truth = (SEED**2 + OWN**2) / k + SHARED**2
    assert np.var([one.delta for one in found]) == pytest.approx(truth, rel=0.1)
    assert np.mean([one.variance for one in found]) == pytest.approx(truth, rel=0.06)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_nineteen_of_twenty_intervals_hold_the_truth(k, paired):
    rng = np.random.default_rng(k)
    limits = [draw(rng, k, 0.01, paired=paired).limits() for _ in range(800)]
    held = np.mean([low <= 0.01 <= high for low, high in limits])
    assert 0.93 <= held <= 0.99  # 0.95, with three standard errors of 800 repetitions below


def test_pairs_with_noise_of_seeds_alone_are_the_paired_t_test():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.8, 0.02, 5), rng.normal(0.78, 0.02, 5)
    still = np.tile(np.concatenate([a, b]), (200, 1))
    found = noise_of(Resampled(np.concatenate([a, b]), still), 5, paired=True)
    wanted = stats.ttest_rel(b, a, alternative="less")
    assert found.p_worse == pytest.approx(wanted.pvalue, rel=1e-9)
    limits = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert found.limits() == pytest.approx((limits.low, limits.high), rel=1e-9)


def test_other_seeds_with_noise_of_seeds_alone_are_welchs_t_test():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.8, 0.02, 3), rng.normal(0.78, 0.05, 6)
    both = np.concatenate([a, b])
    found = noise_of(Resampled(both, np.tile(both, (200, 1))), 3, paired=False)
    wanted = stats.ttest_ind(b, a, equal_var=False, alternative="less")
    assert found.degrees == pytest.approx(wanted.df, rel=1e-9)
    assert found.p_worse == pytest.approx(wanted.pvalue, rel=1e-9)


def test_one_seed_a_side_has_the_noise_of_the_images():
    drawn = np.random.default_rng(3).normal([0.8, 0.79], 0.01, (1000, 2))
    found = noise_of(Resampled(np.array([0.8, 0.79]), drawn), 1, paired=True)
    assert found.error == pytest.approx(0.01 * math.sqrt(2), rel=0.1)
    assert (found.between, found.degrees) == (None, math.inf)
    low, high = found.limits()
    assert (high - low) / 2 == pytest.approx(1.959964 * found.error)


def test_few_seeds_are_never_surer_than_their_images():
    """Two seeds may lie close together by chance; the images still differ."""
    measured = np.array([0.8, 0.8, 0.8, 0.8])
    drawn = np.random.default_rng(4).normal(0.8, 0.01, (1000, 4))
    found = noise_of(Resampled(measured, drawn), 2, paired=True)
    assert found.variance >= 2 * 0.01**2 / 2 * 0.9


def test_without_a_score_or_with_a_lone_seed_there_is_none():
    drawn = np.random.default_rng(5).normal(0.8, 0.01, (200, 3))
    lone = Resampled(np.array([0.8, 0.8, 0.8]), drawn)
    assert noise_of(lone, 1, paired=False) is None
    undefined = Resampled(np.array([0.8, np.nan]), drawn[:, :2])
    assert noise_of(undefined, 1, paired=True) is None


# --- what it would take -----------------------------------------------------------------------


def noise(*, between=None, own=0.0, common=0.0, k=1):
    variance = common + (between or 0.0) / k
    return Noise(
        delta=0.0, between=between, own=own, common=common, num_seeds=k, variance=variance,
        degrees=math.inf if between is None else k - 1,
    )  # fmt: skip


def test_images_needed_are_those_of_the_closed_form():
    """n = (z(1 - alpha/2) + z(power))^2 sigma^2 / gap^2 for one seed a side."""
    sigma_squared, n, gap = 0.09, 500, 0.005
    found = needed(noise(common=sigma_squared / n), n, gap)
    wanted = (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 * sigma_squared / gap**2
    assert found.images == pytest.approx(wanted - n, abs=2)
    assert found.seeds is None


def test_seeds_needed_have_the_power_of_the_t_test():
    """Student's non-central t is an independent way to the same power."""
    gap, between = 0.01, 0.01**2
    found = needed(noise(between=between, k=3), 500, gap)
    k = 3 + found.seeds
    power = [
        stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, gap / math.sqrt(between / n))
        for n in (k - 1, k)
    ]
    assert power[0] < 0.82
    assert power[1] > 0.78
    assert found.images is None, "no image takes away what seeds do"


def test_the_plan_holds_in_simulation():
    """Trained with as many seeds as the plan says, four of five repetitions suffice."""
    gap = 0.05
    measured = noise(between=SEED**2 + OWN**2, own=OWN**2, common=SHARED**2, k=2)
    k = 2 + needed(measured, 500, gap).seeds
    rng = np.random.default_rng(6)
    found = [draw(rng, k, resamples=200).limits()[0] > -gap for _ in range(600)]
    assert 0.76 <= np.mean(found) <= 0.96  # whole seeds round the power up
    assert not resolves(*variance_at(measured, k - 1, 1.0), gap, 0.05)


def test_what_no_number_resolves_has_no_plan():
    found = needed(noise(between=1.0, common=1.0, k=2), 500, 0.001)
    assert (found.seeds, found.images) == (None, None)


# --- many classes -----------------------------------------------------------------------------


def test_holm_by_hand():
    """The four p-values of 0.01, 0.04, 0.03, 0.005: 4, 3, 2, 1 times, and never falling."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_holm_finds_a_loss_too_many_in_five_percent():
    """Of 50 classes that move together, five of them with a true loss."""
    rng = np.random.default_rng(7)
    false = found = 0
    for _ in range(2000):
        z = 0.6 * rng.normal() + 0.8 * rng.normal(size=50)
        z[:5] -= 5
        p = holm(stats.norm.cdf(z).tolist())
        false += any(one <= 0.05 for one in p[5:])
        found += sum(one <= 0.05 for one in p[:5])
    assert false / 2000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)
    assert found / 10_000 > 0.8
