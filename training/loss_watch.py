"""Where a loss stopped being a finite number: step, rank and label, found out only at a failure."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import torch

from ringside.errors import RingsideError
from ringside.spec import RunSpec

NEVER = float("inf")
UNKNOWN = -1.0
ADVICE = {
    "no": "lower the learning rate",
    "bf16": "lower the learning rate or train in fp32",
    "fp16": "lower the learning rate or use bf16 instead of fp16",
}


class _MicroStep(NamedTuple):
    step: int
    loss: torch.Tensor
    logits: torch.Tensor | None
    targets: torch.Tensor | None


class LossWatch:
    """Keeps the micro-steps that no window has counted yet: about a second of losses and logits.

    Keeping costs nothing but that memory, and nothing is looked at before a window's loss is bad.
    CUDA graphs reuse the memory of their outputs, so the logits are not kept there.
    """

    def __init__(self, spec: RunSpec) -> None:
        self.spec = spec
        graphs = spec.training.compile and spec.training.compile_mode == "reduce-overhead"
        self.keeps_logits = not graphs
        self._kept: deque[_MicroStep] = deque()

    def see(
        self, step: int, loss: torch.Tensor, logits: torch.Tensor | None = None,
        targets: torch.Tensor | None = None,
    ) -> None:  # fmt: skip
        """A micro-step of the optimizer step `step`, which counts from 1."""
        if logits is None or not self.keeps_logits:
            self._kept.append(_MicroStep(step, loss.detach(), None, None))
        else:
            self._kept.append(_MicroStep(step, loss.detach(), logits.detach(), targets))

    def forget(self, num_steps: int) -> None:
        """The oldest optimizer steps were counted, and were finite."""
        for _ in range(num_steps * self.spec.training.accumulation_steps):
            if self._kept:
                self._kept.popleft()

    def first_fault(self) -> tuple[float, float]:
        """(step, index of a class) of this rank's first bad loss; NEVER and UNKNOWN if none."""
        for kept in self._kept:
            if not torch.isfinite(kept.loss):
                return float(kept.step), _bad_class(kept.logits, kept.targets)
        return NEVER, UNKNOWN

    def error(
        self, control: Any, *, step: int, learning_rate: float, bad_ranks: np.ndarray,
        classes: tuple[str, ...] = (),
    ) -> RingsideError:  # fmt: skip
        """The sentence, equal on all ranks. A collective of the side group.

        `step` and `bad_ranks` (at least one) are the exchanged window's, in case no rank can tell
        more than that.
        """
        faults = control.gather(self.first_fault())
        rank = int(faults[:, 0].argmin())
        if np.isfinite(faults[rank, 0]):
            step, label = int(faults[rank, 0]), int(faults[rank, 1])
        else:
            rank, label = int(bad_ranks[0]), int(UNKNOWN)
        precision = self.spec.accelerate.mixed_precision
        name = "fp32" if precision == "no" else precision
        return RingsideError(
            f"The loss is not a finite number any more, first at step {step} on rank {rank}"
            f"{_class_words(label, classes)} (precision {name}, learning rate "
            f"{learning_rate:.3g}); {ADVICE[precision]}."
        )


def _bad_class(logits: torch.Tensor | None, targets: torch.Tensor | None) -> float:
    """The first class whose column is not finite; UNKNOWN when all are, or every one is not."""
    for values in (targets, logits):
        if values is None:
            continue
        finite = values.isfinite().all(dim=0)
        if not finite.all() and finite.any():
            return float((~finite).nonzero()[0, 0])
    return UNKNOWN


def _class_words(label: int, classes: tuple[str, ...]) -> str:
    if label < 0:
        return ""
    return f" in the class {classes[label]!r}" if label < len(classes) else f" in class {label}"
