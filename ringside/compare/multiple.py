"""Many questions at once: of a hundred classes some look worse by chance."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the given order (Holm 1979, Scandinavian Journal of Statistics 6, 65).

    Rejecting where these are at most alpha finds one loss too many with a probability of at most
    alpha, however the questions hang together, as classes of the same images do.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, highest = [1.0] * len(p_values), 0.0
    for place, at in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[at]))
        adjusted[at] = highest
    return adjusted
