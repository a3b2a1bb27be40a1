"""One labelled image file, as read from folders or from a metadata file."""

from __future__ import annotations

from dataclasses import dataclass, field

from ringside.data.images import Task
from ringside.data.splits import Split


@dataclass(frozen=True)
class Record:
    """`path` is relative to the data folder; `split` None means that it has to be drawn."""

    path: str
    labels: tuple[str, ...]
    split: Split | None = None


@dataclass(frozen=True)
class Records:
    """All labelled images of a folder with what a person should know about reading them."""

    task: Task
    records: list[Record]
    notes: list[str] = field(default_factory=list)
