"""What takes a while to draw, made once for all viewers and kept for a while."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

from app.views.charts.drawing import picture
from app.views.charts.figure import Figure, Picture

T = TypeVar("T")

MAX_KEPT = 48


class Drawings:
    """Results by key; safe to use from many threads, of which one draws at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What `make` gave for this key, the newest `MAX_KEPT` of them."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            self._kept.move_to_end(key)
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
            found: T = self._kept[key]
            return found


def drawn(figures: Iterable[Figure | None]) -> list[Picture]:
    """All that there is something to draw for."""
    return [picture(figure) for figure in figures if figure is not None]
