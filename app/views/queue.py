"""The queue in sentences: where a run stands, for whom it waits, and what became of a try."""

from __future__ import annotations

from pathlib import Path

from ringside.durations import duration
from ringside.launch.claims import Claims
from ringside.launch.queue import Holder, Place, places
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.words import say

MAX_NAMES = 2


def place_sentence(place: Place) -> str:
    """`2nd in the queue, waits for amber-fox (GPU 0, 1)`."""
    where = say(f"queue.{_ordinal(place.position)}", n=place.position)
    if place.is_paused:
        return say("queue.place_paused", where=where)
    if not place.waits_for:
        return say("queue.place_next", where=where)
    names = ", ".join(map(_holder, place.waits_for[:MAX_NAMES]))
    more = len(place.waits_for) - MAX_NAMES
    if more > 0:
        names = say("queue.names_and_more", names=names, n=more)
    return say("queue.place", where=where, names=names)


def places_by_run(root: Path) -> dict[str, Place]:
    """The places of all waiting runs."""
    return {place.run_id: place for place in places(Claims(root))}


def place_of(record: RunRecord) -> Place | None:
    """Where one run stands; None for a run that does not wait."""
    if record.state != "queued":
        return None
    return places_by_run(Path(record.path).parent).get(record.id)


def launch_lines(record: RunRecord) -> list[str]:
    """Place in the queue, time limit, and the other tries of the same run."""
    lines, spec = [], record.spec
    if place := place_of(record):
        lines.append(say("queue.line", place=place_sentence(place)))
    if spec is not None and spec.time_limit_s is not None:
        lines.append(say("queue.limit", limit=duration(spec.time_limit_s)))
    return [*lines, *(try_sentence(kind, run_id) for kind, run_id in tries_of(record))]


def tries_of(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """(`retry_of` or `retried_as`, run id) of the other tries of the same run."""
    found = {
        "retry_of": record.spec.retry_of if record.spec else None,
        "retried_as": record.exit.retried_as if record.exit else None,
    }
    return tuple((kind, run_id) for kind, run_id in found.items() if run_id is not None)


def try_sentence(kind: str, run_id: str) -> str:
    """`another try of amber-fox`, `tried again as amber-fox`."""
    return say(f"queue.{kind}", name=RunDir(Path(run_id)).name)


def _holder(holder: Holder) -> str:
    gpus = ", ".join(map(str, holder.gpu_ids))
    return say("queue.holder", name=holder.name, gpus=gpus) if gpus else holder.name


def _ordinal(number: int) -> str:
    """The template of `1st`, `2nd`, `3rd`, `4th`, as English counts; others may all be alike."""
    if number % 100 in (11, 12, 13):
        return "nth"
    return {1: "nth_1", 2: "nth_2", 3: "nth_3"}.get(number % 10, "nth")
