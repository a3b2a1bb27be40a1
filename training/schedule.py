"""The learning rate as a closed form of the optimizer step.

Accelerate's prepared scheduler steps `num_processes` times per optimizer step, so the rate would
depend on the number of processes; this one cannot.
"""

from __future__ import annotations

import math


def learning_rate_at(step: int, *, peak: float, total_steps: int, warmup_steps: int) -> float:
    """Linear warm-up to `peak`, then a half cosine to zero (Loshchilov & Hutter, arXiv:1608.03983).

    `step` counts optimizer steps from 0; the value is the rate used *in* that step.
    """
    if step < warmup_steps:
        return peak * (step + 1) / warmup_steps
    progress = (step - warmup_steps) / max(1, total_steps - warmup_steps)
    return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
