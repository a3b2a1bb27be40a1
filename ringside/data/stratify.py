"""A seeded split that gives every label its share of both parts.

Iterative stratification after Sechidis, Tsoumakas and Vlahavas, "On the Stratification of
Multi-Label Data", ECML PKDD 2011: the label with the fewest images left is dealt first, because
later nothing could be put right for it. Two things differ from their algorithm: equal pictures
stay together, and images without a label come last and even out the total. A label with three
images has one in validation, so a set of many tiny classes validates with up to a third.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from random import Random

from ringside.errors import DataError
from ringside.words import say

VAL_RATIO = 0.2
TIE = 0.01  # images


def choose_val(
    labels: Sequence[Collection[str]],
    seed: int = 0,
    twins: Iterable[Collection[int]] = (),
) -> set[int]:
    """The indices of about a fifth of the images, at least one, spread over the labels.

    Never more than half of a label's images, so a class with a single image is trained on. Images
    of one group of `twins` (equal content) are never divided. The same labels, seed and twins
    give the same split. Raises `DataError` for fewer than two images that differ.
    """
    units = _units(len(labels), twins)
    if len(units) < 2:
        raise DataError(say("dataset.too_few_to_split", n=len(units)))
    deal = _Deal([Counter(label for i in unit for label in labels[i]) for unit in units], units)
    deal.run(Random(seed))
    chosen = deal.val or {deal.least_missed()}
    return {i for unit in chosen for i in units[unit]}


def _units(num_images: int, twins: Iterable[Collection[int]]) -> list[tuple[int, ...]]:
    groups = {min(group): tuple(sorted(group)) for group in twins}
    followers = {i for first, group in groups.items() for i in group if i != first}
    return [groups.get(i, (i,)) for i in range(num_images) if i not in followers]


class _Deal:
    """Deals units of images that stay together; `val` collects those that validate."""

    def __init__(self, contents: list[Counter[str]], units: list[tuple[int, ...]]) -> None:
        self.contents = contents
        self.sizes = [len(unit) for unit in units]
        self.totals: Counter[str] = Counter()
        for content in contents:
            self.totals.update(content)
        self.left = Counter(self.totals)  # images of a label that are not dealt yet
        self.in_val: Counter[str] = Counter()
        self.val: set[int] = set()
        self.deviation = 0.0  # images that validation lacks so far

    def run(self, random: Random) -> None:
        """Deal the labelled images, rarest label first, then those without a label."""
        # Of `random`, only the sequence of .random() is promised to stay the same.
        drawn = [random.random() for _ in self.sizes]
        members: dict[str, list[int]] = {label: [] for label in self.totals}
        for unit in sorted(range(len(drawn)), key=drawn.__getitem__):
            for label in self.contents[unit]:
                members[label].append(unit)
        self._deal_labelled(members)
        unlabelled = [unit for unit in range(len(drawn)) if not self.contents[unit]]
        self._deal_unlabelled(sorted(unlabelled, key=drawn.__getitem__))

    def _deal_labelled(self, members: dict[str, list[int]]) -> None:
        is_open = [True] * len(self.sizes)
        queue = [(count, label) for label, count in self.totals.items()]
        heapq.heapify(queue)
        while queue:
            count, label = heapq.heappop(queue)
            if not count or count != self.left[label]:
                continue  # out of date: the same label stands further on with fewer images
            dealt = [unit for unit in members[label] if is_open[unit]]
            for other in self._deal_label(label, dealt):
                heapq.heappush(queue, (self.left[other], other))
            for unit in dealt:
                is_open[unit] = False

    def _deal_label(self, label: str, dealt: list[int]) -> set[str]:
        """Give validation what the label lacks there; return all labels of the images dealt."""
        lacking = VAL_RATIO * self.totals[label] - self.in_val[label]
        tie = max(-TIE, min(TIE, self.deviation))  # the total decides where two ways are as good
        wanted = round(lacking + tie)
        for unit in dealt:
            goes = self.contents[unit][label] <= wanted and self._leaves_half(unit)
            wanted -= self.contents[unit][label] if goes else 0
            self._put(unit, goes)
        return {other for unit in dealt for other in self.contents[unit]}

    def _leaves_half(self, unit: int) -> bool:
        content = self.contents[unit].items()
        return all(self.in_val[k] + n <= self.totals[k] // 2 for k, n in content)

    def _put(self, unit: int, goes_to_val: bool) -> None:
        self.left.subtract(self.contents[unit])
        self.deviation += VAL_RATIO * self.sizes[unit]
        if goes_to_val:
            self.val.add(unit)
            self.in_val.update(self.contents[unit])
            self.deviation -= self.sizes[unit]

    def _deal_unlabelled(self, units: list[int]) -> None:
        wanted = round(self.deviation + VAL_RATIO * sum(self.sizes[unit] for unit in units))
        for unit in units:
            goes = self.sizes[unit] <= wanted
            wanted -= self.sizes[unit] if goes else 0
            self._put(unit, goes)

    def least_missed(self) -> int:
        """The unit to validate where the set is so small that every share rounds to none."""

        def missed(unit: int) -> tuple[int, float, int]:
            rarest = min((self.totals[label] for label in self.contents[unit]), default=0)
            return self.sizes[unit], -rarest, unit

        return min(range(len(self.sizes)), key=missed)
