"""How much more it would take to decide: from the spread that was measured.

A difference is decided when its interval leaves the limit behind, `gap` away. For that to happen
in `POWER` of all repetitions, if the difference is what was measured,

    (t(1 - alpha) + t(POWER)) * error <= gap

(Julious 2004, Statistics in Medicine 23, doi:10.1002/sim.1783, with Student's t for few seeds).
Further seeds divide the variance between seeds, further images that of the images.
"""

from __future__ import annotations

import math

import msgspec

from ringside.compare.noise import CONFIDENCE, Noise, quantile

POWER = 0.8
MAX_SEEDS = 50
"""A plan beyond is none."""
MAX_TIMES = 100
"""So many times the images that there are; a plan beyond is none."""


class Needed(msgspec.Struct, frozen=True, kw_only=True):
    """Either of the two would do: more seeds for both sides, or more validation images.

    None where no reasonable number of them would, and for seeds where only one was trained, so
    that their spread is unknown.
    """

    seeds: int | None = None
    images: int | None = None


def needed(noise: Noise, num_images: int, gap: float, alpha: float = 1 - CONFIDENCE) -> Needed:
    """What is missing to resolve `gap`; `alpha` is two-sided."""
    return Needed(
        seeds=_more_seeds(noise, gap, alpha), images=_more_images(noise, num_images, gap, alpha)
    )


def variance_at(noise: Noise, num_seeds: int, times_images: float) -> tuple[float, float]:
    """The variance and its degrees of freedom with so many seeds and so many times the images."""
    if noise.between is None:
        return noise.common / times_images, math.inf
    of_seeds = max(0.0, noise.between - noise.own) + noise.own / times_images
    variance = of_seeds / num_seeds + noise.common / times_images
    loose = (of_seeds / num_seeds) ** 2 / (num_seeds - 1)
    return variance, variance**2 / loose if loose > 0 else math.inf


def resolves(variance: float, degrees: float, gap: float, alpha: float) -> bool:
    """Whether a gap is left behind in `POWER` of all repetitions."""
    factor = quantile(1 - alpha / 2, degrees) + quantile(POWER, degrees)
    return factor * math.sqrt(variance) <= gap


def _more_seeds(noise: Noise, gap: float, alpha: float) -> int | None:
    if noise.between is None:
        return None
    for num_seeds in range(max(2, noise.num_seeds + 1), MAX_SEEDS + 1):
        if resolves(*variance_at(noise, num_seeds, 1.0), gap, alpha):
            return num_seeds - noise.num_seeds
    return None


def _more_images(noise: Noise, num_images: int, gap: float, alpha: float) -> int | None:
    def enough(times: float) -> bool:
        return resolves(*variance_at(noise, noise.num_seeds, times), gap, alpha)

    if not enough(MAX_TIMES):
        return None
    low, high = 1.0, float(MAX_TIMES)
    while (high - low) * num_images > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(1, math.ceil((high - 1) * num_images))
