"""How sure the difference of two ways to train is, over seeds and validation images alike.

Seeds and images are crossed: every model of either side predicts the same images. That is the
design of reader studies, with seeds for readers and images for cases, and the variance is theirs
(Obuchowski and Rockette 1995, Communications in Statistics 24, doi:10.1080/03610919508813243; with
the degrees of freedom of Hillis 2007, Statistics in Medicine 26, doi:10.1002/sim.2532):

    variance = between / seeds + common

`between` is the variance of the difference from seed to seed, `common` the covariance, over
resampled images, of the differences of two unlike seeds: the noise of the images, which no further
seed takes away. With equal seeds on both sides the differences are taken seed by seed. With other
seeds the two sides are independent draws, and each adds its own variance over its own number of
seeds (Hillis 2014, Statistics in Medicine 33, doi:10.1002/sim.5926). With one seed a side nothing
is known of seeds, and the variance is that of the images: it speaks of these two models alone.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from ringside.scores.crossed import Resampled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

CONFIDENCE = 0.95
MIN_DRAWN = 100
"""Resamples in which the score must be defined."""


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """The difference "candidate minus reference" of a score, and its variance in parts.

    `between` is the variance of one pair's difference from seed to seed, `own` the noise of the
    images in it that another seed meets anew, `common` the noise that all seeds share. `num_seeds`
    pairs are behind it; with one pair `between` is None and all noise is `common`.
    """

    delta: float
    between: float | None
    own: float
    common: float
    num_seeds: int
    variance: float
    degrees: float

    @property
    def error(self) -> float:
        """The standard error of `delta`."""
        return math.sqrt(self.variance)

    def limits(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """The two-sided confidence limits of `delta` (Student's t)."""
        half = quantile(1 - (1 - confidence) / 2, self.degrees) * self.error
        return self.delta - half, self.delta + half

    @property
    def p_worse(self) -> float | None:
        """How likely a difference as low as this were, had nothing been lost (one-sided).

        None without any noise, which tells nothing.
        """
        from scipy.special import stdtr

        return float(stdtr(self.degrees, self.delta / self.error)) if self.variance > 0 else None


def quantile(probability: float, degrees: float) -> float:
    """Of Student's t; of the normal distribution for infinite degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def noise_of(scores: Resampled, num_reference: int, *, paired: bool) -> Noise | None:
    """The noise of the mean difference; the first `num_reference` models are the reference's.

    `paired`: the models of both sides stand in the order of the same seeds. None where the score is
    undefined for a model, and where a side has one seed and the other several unlike ones: how far
    the seeds of the one lie apart is then unknown.
    """
    import numpy as np

    a, b = scores.measured[:num_reference], scores.measured[num_reference:]
    drawn = scores.drawn[np.isfinite(scores.drawn).all(axis=1)]
    if not np.isfinite(scores.measured).all() or len(drawn) < MIN_DRAWN:
        return None
    again_a, again_b = drawn[:, :num_reference], drawn[:, num_reference:]
    if len(a) == len(b) == 1:
        variance = float(np.var(again_b[:, 0] - again_a[:, 0], ddof=1))
        return Noise(
            delta=float(b[0] - a[0]), between=None, own=0.0, common=variance, num_seeds=1,
            variance=variance, degrees=math.inf,
        )  # fmt: skip
    if paired:
        shared, own = _covariances(again_b - again_a)
        return _noise(float((b - a).mean()), [(b - a, own)], max(0.0, shared))
    if min(len(a), len(b)) < 2:
        return None
    (shared_a, own_a), (shared_b, own_b) = _covariances(again_a), _covariances(again_b)
    both = np.cov(drawn, rowvar=False)[:num_reference, num_reference:].mean()
    common = max(0.0, shared_a + shared_b - 2 * float(both))
    return _noise(float(b.mean() - a.mean()), [(a, own_a), (b, own_b)], common)


def _covariances(drawn: Floats) -> tuple[float, float]:
    """Over resamples `[r, k]`: the mean covariance of two columns, and what each varies beyond."""
    import numpy as np

    table = np.atleast_2d(np.cov(drawn, rowvar=False))
    k = len(table)
    shared = float((table.sum() - np.trace(table)) / (k * (k - 1)))
    return shared, max(0.0, float(np.trace(table)) / k - shared)


def _noise(delta: float, parts: list[tuple[Floats, float]], common: float) -> Noise:
    """Put together the parts of independent sets of seeds: their values, their own image noise."""
    import numpy as np

    # A spread between few seeds is small by chance at times; it is not below what images alone do.
    found = [(max(float(np.var(values, ddof=1)), own), len(values)) for values, own in parts]
    shares = [(between / k, k - 1) for between, k in found]
    variance = sum(share for share, _ in shares) + common
    loose = sum(share**2 / degrees for share, degrees in shares)
    return Noise(
        delta=delta,
        between=sum(between for between, _ in found),
        own=sum(own for _, own in parts),
        common=common,
        num_seeds=min(k for _, k in found),
        variance=variance,
        degrees=variance**2 / loose if loose > 0 else math.inf,
    )
