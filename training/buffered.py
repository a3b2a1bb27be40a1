"""Batches that an input has made ahead: what is timed while they last is not the input's pace."""

from __future__ import annotations

from typing import Any, NamedTuple

from training.input.batches import AHEAD


class Buffered(NamedTuple):
    """At most `num_batches` lie ready; workers that started together end `num_at_once` together."""

    num_batches: int
    num_at_once: int


def buffered(batches: Any) -> Buffered:
    """Of this rank's batches; none lie ready where no worker makes them."""
    loader = getattr(batches, "loader", None)
    if loader is None or not loader.num_workers:
        return Buffered(0, 1)
    # On a GPU a thread prepares some more, and holds one while it waits for room.
    prepared = AHEAD + 1 if batches.device.type == "cuda" else 0
    return Buffered(loader.num_workers * loader.prefetch_factor + prepared, loader.num_workers)
