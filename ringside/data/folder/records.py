"""One labelled image file, as read from folders or from a table, and what cannot be one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ringside.data.images import Task
from ringside.data.notes import Note
from ringside.data.splits import Split

RowFault = Literal["missing", "outside", "no-label", "conflicting-rows"]


@dataclass(frozen=True)
class Record:
    """`path` is relative to the data folder; `split` None means that it has to be drawn."""

    path: str
    labels: tuple[str, ...]
    split: Split | None = None


@dataclass(frozen=True)
class Problem:
    """A row that gives no usable record; `file` is its path, or what the row says instead."""

    code: RowFault
    file: str
    reason: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Records:
    """All labelled images of a folder or table with what a person should know about reading them.

    `layout` says in a sentence how labels and files were found.
    """

    task: Task
    records: list[Record]
    layout: str
    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
