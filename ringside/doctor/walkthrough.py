"""The six points of a well-known checklist for slow multi-GPU training, walked with this run.

Each point says what the checklist claims, what is true, and what this run measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from ringside.doctor import ticks
from ringside.doctor.case import Case
from ringside.doctor.ticks import Figure, State
from ringside.words import say

Name = Literal["bytes", "nccl", "overlap", "accumulation", "precision", "scores"]


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One of the six. `state`: ok: nothing to do; attention: look here; unknown: not measured."""

    number: int
    name: Name
    title: str
    claim: str
    truth: str
    figures: tuple[Figure, ...]
    state: State


POINTS: dict[Name, Callable[[Case], tuple[State, tuple[Figure, ...]]]] = {
    "bytes": ticks.bytes_on_the_wire,
    "nccl": ticks.nccl_settings,
    "overlap": ticks.overlap,
    "accumulation": ticks.accumulation,
    "precision": ticks.precision,
    "scores": ticks.scores,
}


def walk(case: Case) -> tuple[Point, ...]:
    """All six points, in the order of the checklist."""
    return tuple(_point(number, name, case) for number, name in enumerate(POINTS, start=1))


def _point(number: int, name: Name, case: Case) -> Point:
    state, figures = POINTS[name](case)
    return Point(
        number=number,
        name=name,
        title=say(f"doctor.walk_{name}"),
        claim=say(f"doctor.walk_{name}_claim"),
        truth=say(f"doctor.walk_{name}_truth"),
        figures=figures,
        state=state,
    )
