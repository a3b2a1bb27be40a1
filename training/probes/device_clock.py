"""Marks in the device's stream, which are read when they have passed; on a CPU the clock."""

from __future__ import annotations

import time
from typing import Any

import torch

CYCLES_PER_S = 2e9
"""About the clock of a GPU under load; a hold-back need not be exact."""


def mark(device: torch.device) -> Any:
    """Now, for the work issued so far."""
    if device.type != "cuda":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def elapsed_us(begin: Any, end: Any) -> float:
    """Microseconds between two marks; on a GPU both must have passed."""
    if isinstance(begin, torch.cuda.Event):
        return 1000 * float(begin.elapsed_time(end))
    return 1e6 * float(end - begin)


def hold_back(seconds: float) -> None:
    """Keep the GPU busy with nothing for about `seconds`, so that what follows is queued ahead.

    Where torch has no such kernel any more, nothing is held back.
    """
    sleep = getattr(torch.cuda, "_sleep", None)
    if sleep is not None:
        sleep(int(seconds * CYCLES_PER_S))
