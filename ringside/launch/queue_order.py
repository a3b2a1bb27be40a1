"""The order of a machine's queue where a person changed it, and whether it is paused.

One small file for each machine, beside the runs, written under the lock of the queue: two people
who move runs at once both get their way, one after the other. Without the file runs stand as they
came; a run that ended stays in it until the next change, and nobody minds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

import msgspec

from ringside.launch.locks import folder_beside, queue_lock
from ringside.rundir import check_format, write_atomic
from ringside.spec import FORMAT

FOLDER = ".queue"

Direction = Literal["first", "up", "down"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """`.queue/HOST.json`: runs that were moved, in their order; later ones come after them."""

    format: int = FORMAT
    runs: tuple[str, ...] = ()
    is_paused: bool = False


def read_order(root: Path, host: str) -> Order:
    """The order as it was left; without a readable file, nothing was moved or paused.

    RunDirError for a file of a newer Ringside.
    """
    path = _path(root, host)
    try:
        order = msgspec.json.decode(path.read_bytes(), type=Order)
    except (OSError, msgspec.DecodeError):
        return Order()
    check_format(order.format, str(path))
    return order


def change_order(root: Path, host: str, change: Callable[[Order], Order]) -> Order:
    """Write what `change` makes of the order; nobody else changes it or takes a turn meanwhile.

    RunDirError where it cannot be stored, LaunchError when the lock is not free.
    """
    with queue_lock(root):
        order = change(read_order(root, host))
        folder_beside(root, FOLDER)
        write_atomic(_path(root, host), msgspec.json.encode(order) + b"\n")
    return order


def moved(line: list[str], run_id: str, direction: Direction) -> list[str]:
    """The line with one of its runs moved; at the end of the line it stays."""
    at = line.index(run_id)
    to = {"first": 0, "up": max(0, at - 1), "down": at + 1}[direction]
    rest = [other for other in line if other != run_id]
    return [*rest[:to], run_id, *rest[to:]]


def _path(root: Path, host: str) -> Path:
    """A name that stays in its folder whatever the machine calls itself."""
    safe = re.sub(r"[^A-Za-z0-9_-]", "_", host) or "_"
    return root / FOLDER / f"{safe[:100]}.json"
