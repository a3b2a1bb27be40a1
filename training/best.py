"""Which epoch is the best so far, and whether training has stopped getting better.

Every rank gets the same scores, so every rank comes to the same answer without asking the others.
"""

from __future__ import annotations

import math

from ringside.checkpoints import BestScore
from ringside.errors import SetupError
from ringside.events import Evaluated
from ringside.words import say

LOSS = "val_loss"


class Best:
    """The best epoch by one score; the loss stands in where that score is undefined."""

    def __init__(self, by: str, task: str) -> None:
        if by == "accuracy" and task == "multi_label":
            raise SetupError(say("refused.best_by"))
        self.by = by
        self.so_far: BestScore | None = None

    def rises(self, scores: Evaluated) -> bool:
        """Whether this epoch is better than all before, by any amount; remembers it if so."""
        found = self._of(scores)
        if found is None or not self._beats(found):
            return False
        self.so_far = found
        return True

    def why_stop(self, epoch: int, patience: int | None) -> str | None:
        """A sentence when the last `patience` epochs up to `epoch` brought nothing better."""
        last = self.so_far.epoch if self.so_far else 0
        if patience is None or epoch - last < patience:
            return None
        if self.so_far is None:
            return say("noted.never_finite", epoch=epoch, by=self.by)
        key = "not_lower" if self.so_far.by == LOSS else "not_better"
        return say(
            f"noted.{key}{'_once' * (patience == 1)}", epoch=epoch, by=self.so_far.by,
            value=self.so_far.value, last=last, n=patience,
        )  # fmt: skip

    def _of(self, scores: Evaluated) -> BestScore | None:
        for by in (self.by, LOSS):
            value: float | None = getattr(scores, by)
            if value is not None and math.isfinite(value):
                return BestScore(by=by, value=value, epoch=scores.epoch)
        return None

    def _beats(self, found: BestScore) -> bool:
        before = self.so_far
        if before is None or before.by != found.by:
            # A score of another kind cannot be compared; the one that was asked for goes first.
            return before is None or found.by == self.by
        return found.value < before.value if found.by == LOSS else found.value > before.value
