"""Who kept the others waiting, told from the marks of all ranks.

A rank that waits in a collective shows the symptom. The cause is the rank that is furthest behind:
ranks do the same work in the same order, so positions compare without a common clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringside.marks import Mark
from ringside.words import say

_SAID = ("data", "forward", "backward", "optimizer", "save", "profile", "exchange")
"""Activities that are said beside the phase."""


def place(mark: Mark) -> str:
    """Where a rank stands: `at step 41 while loading data`."""
    numbers: dict[str, Any] = {"step": mark.step, "epoch": mark.epoch}
    if mark.activity == "finished":
        return say("place.finished", **numbers)
    if mark.phase in ("compile", "train") and mark.activity == "begin":
        return say("place.epoch_begins", **numbers)
    if mark.phase == "train" and mark.activity == "exchange":
        return say("place.exchange_after", **numbers)
    where = say(f"place.{mark.phase}", **numbers)
    return say(f"place.while_{mark.activity}", where=where) if mark.activity in _SAID else where


def behind(marks: Sequence[Mark]) -> list[Mark]:
    """The ranks that are furthest behind; empty when all stand at the same place."""
    if not marks:
        return []
    least = min(mark.position for mark in marks)
    last = [mark for mark in marks if mark.position == least]
    return last if len(last) < len(marks) else []


def first_out(marks: Sequence[Mark]) -> list[Mark]:
    """The ranks that finished while others did not; empty when none or all have."""
    finished = [mark for mark in marks if mark.activity == "finished"]
    return finished if len(finished) < len(marks) else []


def waiting_sentence(marks: Sequence[Mark], now: float) -> str:
    """Who stopped where, and who waited for it how long at `now` (seconds since 1970)."""
    early = first_out(marks)
    missing = early or behind(marks)
    if not missing:
        return say("ended.all_stopped", where=place(marks[0]))
    others = [mark for mark in marks if mark not in missing]
    longest = min(others, key=lambda mark: mark.t)
    who = "one" if len(missing) == 1 else "some"
    return say(
        f"ended.{who}_{'finished' if early else 'stopped'}", who=_ranks(missing, "ended.rank"),
        where=place(missing[0]), others=_ranks(others, "ended.rank", "_within"),
        there=place(longest), seconds=max(0.0, now - longest.t),
    )  # fmt: skip


def _ranks(marks: Sequence[Mark], key: str, ending: str = "") -> str:
    """`Rank 0`, `Ranks 0 and 2`; within a sentence `ranks 0, 1 and 3`."""
    *names, last = (str(mark.rank) for mark in marks)
    if not names:
        return say(f"{key}{ending}", rank=last)
    return say(f"{key}s{ending}", names=", ".join(names), last=last)
