"""Find runs: words, filters and an order, for the terminal and the page alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, Protocol, TypeVar, get_args

import msgspec

from ringside.errors import RunDirError, SpecError, nearest
from ringside.run import RunRecord, State, fold_run, summarise
from ringside.rundir import list_run_dirs
from ringside.shelf.figures import Figures, all_figures
from ringside.shelf.notes import NOTHING, Notes, read_notes
from ringside.words import say

Sort = Literal["newest", "speedup", "auc", "f1", "epoch-time"]
SORTS: tuple[Sort, ...] = get_args(Sort)
STATES: tuple[State, ...] = get_args(State)
_ORDERS = {
    "speedup": ("speedup", -1),
    "auc": ("auc_macro", -1),
    "f1": ("f1_macro", -1),
    "epoch-time": ("epoch_time_s", 1),
}
"""The figure of each order, and whether more (-1) or less (1) of it comes first."""


class Findable(Protocol):
    """What a run is found by."""

    @property
    def id(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def preset(self) -> str | None: ...
    @property
    def model(self) -> str | None: ...
    @property
    def data(self) -> str | None: ...
    @property
    def notes(self) -> Notes: ...
    @property
    def figures(self) -> Figures | None: ...


T = TypeVar("T", bound=Findable)


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. `archived`: the runs that were put away, and only those."""

    search: str = ""
    state: str | None = None
    preset: str | None = None
    tag: str | None = None
    archived: bool = False
    sort: Sort = "newest"

    @property
    def narrows(self) -> bool:
        """Whether words or a filter leave runs out, put away or not."""
        return bool(self.search.strip() or self.state or self.preset or self.tag)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the list in the terminal; `started` in seconds since 1970.

    `figures` are there where they were asked for, by an order that needs them.
    """

    id: str
    state: State
    preset: str | None = None
    data: str | None = None
    model: str | None = None
    started: float | None = None
    notes: Notes = NOTHING
    figures: Figures | None = None
    retry_of: str | None = None
    retried_as: str | None = None


def check_query(query: Query) -> Query:
    """The query, or a SpecError for a state or an order that there is not."""
    if query.state is not None and query.state not in STATES:
        raise SpecError(say("shelf.no_state", state=query.state, hint=nearest(query.state, STATES)))
    if query.sort not in SORTS:
        raise SpecError(say("shelf.no_sort", sort=query.sort, hint=nearest(query.sort, SORTS)))
    return query


def matches(item: Findable, query: Query) -> bool:
    """Whether the run is asked for: all words are in it somewhere, and every filter fits."""
    notes = item.notes
    if notes.archived != query.archived:
        return False
    if query.state and item.state != query.state:
        return False
    if query.preset and (item.preset or "").casefold() != query.preset.casefold():
        return False
    if query.tag and query.tag.casefold() not in (tag.casefold() for tag in notes.tags):
        return False
    words = query.search.casefold().split()
    return not words or _has_all(item, words)


def in_order(items: Iterable[T], sort: Sort) -> list[T]:
    """Newest first, or the best first; of equals the newest, and last what was not measured."""
    found = sorted(items, key=lambda item: item.id, reverse=True)
    if sort == "newest":
        return found

    name, sign = _ORDERS[sort]

    def key(item: T) -> tuple[bool, float]:
        value = getattr(item.figures, name, None)
        return value is None, sign * (value or 0.0)

    return sorted(found, key=key)


def find_entries(root: Path, query: Query, limit: int | None = None) -> list[Entry]:
    """At most `limit` of the runs that are asked for, in their order.

    In the order of time nothing is read but small files, and none beyond the last one shown.
    """
    found = (entry for entry in _entries(root) if matches(entry, query))
    if query.sort == "newest":
        # The folder is listed newest first already.
        return list(itertools.islice(found, limit))
    return in_order(_measured(root, list(found)), query.sort)[:limit]


def _entries(root: Path) -> Iterator[Entry]:
    for run in list_run_dirs(root):
        summary = summarise(run)
        if summary is not None:
            yield Entry(
                id=summary.id, state=summary.state, preset=summary.preset, data=summary.data,
                model=summary.model, started=summary.started, notes=read_notes(run),
                retry_of=summary.retry_of, retried_as=summary.retried_as,
            )  # fmt: skip


def _measured(root: Path, entries: list[Entry]) -> list[Entry]:
    """With the figures; the baselines may be runs that are not asked for."""
    figures = all_figures(list(_records(root)))
    return [msgspec.structs.replace(entry, figures=figures.get(entry.id)) for entry in entries]


def _records(root: Path) -> Iterator[RunRecord]:
    for run in list_run_dirs(root):
        try:
            yield fold_run(run)
        except RunDirError:
            continue  # written by a newer Ringside


def _has_all(item: Findable, words: Iterable[str]) -> bool:
    notes = item.notes
    parts = (item.id, item.preset, item.model, item.data, *notes.tags, notes.note)
    text = "\n".join(part for part in parts if part).casefold()
    return all(word in text for word in words)
