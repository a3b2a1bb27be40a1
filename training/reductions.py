"""How many collectives an optimizer step really issues, by the process group's own counter."""

from __future__ import annotations

from torch import distributed

SETTLING_STEPS = 2
"""DDP rebuilds its buckets once, in the second step, and broadcasts the new order of parameters."""


class CollectiveCounter:
    """Collectives of the default group between optimizer steps; the side group has its own count.

    `ProcessGroup._get_sequence_number_for_group` rises by one for every collective, on gloo and
    NCCL alike (torch 2.11 to 2.14). Where there is no such number, nothing is counted. Nor is a
    pipeline, whose sends gloo counts as well and NCCL does not: it has one replica.
    """

    def __init__(self, num_replicas: int) -> None:
        self.num_replicas = num_replicas
        self._steps = 0
        self.begin()

    def begin(self) -> None:
        """Start an epoch's count."""
        self._issued = self._counted = 0
        self.skip()

    def skip(self) -> None:
        """Leave out what was issued since the last step: an evaluation or a checkpoint."""
        self._last = self._number()

    def step(self) -> None:
        """An optimizer step has been issued."""
        self._steps += 1
        number = self._number()
        if number is not None and self._last is not None and self._steps > SETTLING_STEPS:
            self._issued += number - self._last
            self._counted += 1
        self._last = number

    @property
    def per_step(self) -> float | None:
        """The mean over the counted steps; None with one process, or when there were none."""
        return self._issued / self._counted if self._counted else None

    def _number(self) -> int | None:
        if self.num_replicas == 1:
            return None
        group = distributed.group.WORLD
        try:
            return int(group._get_sequence_number_for_group())  # type: ignore[union-attr]
        except (AttributeError, RuntimeError):
            return None
