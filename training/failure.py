"""How a rank says why it ends: one small file per rank, so the first cause is never lost."""

from __future__ import annotations

import time
import traceback

import torch

from ringside.errors import RingsideError
from ringside.rundir import RunDir


def describe(error: BaseException) -> str:
    """One sentence for a person."""
    if isinstance(error, RingsideError):
        return str(error)
    if isinstance(error, torch.OutOfMemoryError):
        return (
            "The GPU ran out of memory. Choose a smaller batch, a 16-bit preset, or accumulation "
            "with the global batch kept."
        )
    if "more than 1 value per channel" in str(error):
        return (
            "BatchNorm cannot train on one image per device and micro-step; choose a batch of at "
            "least two images per device and micro-step."
        )
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no message'}"


def write_error(run: RunDir, rank: int, error: BaseException) -> None:
    """Leave `ranks/rankN.error.json`; the supervisor and the page show the earliest one."""
    user = isinstance(error, RingsideError)
    run.write(
        run.ranks / f"rank{rank}.error.json",
        {
            "rank": rank,
            "t": time.time(),
            "sentence": describe(error),
            "traceback": None if user else "".join(traceback.format_exception(error))[-20_000:],
            "user_error": user,
        },
    )
