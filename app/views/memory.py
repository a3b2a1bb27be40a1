"""What browsers hold of a page, under a short token each, so that a poll need not send it all.

The token stands for what the server last sent to whoever holds it. It comes back with the next
poll, so an answer that was lost on the way is sent again; an unknown one means: nothing, send all.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

MAX_TOKENS = 2000
"""Some kilobytes each; whoever has not polled for longest is sent everything once more."""

MAX_TOKEN = 64


class Memory:
    """Token to what it stands for; safe to use from many threads."""

    def __init__(self, limit: int = MAX_TOKENS) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, held: Mapping[str, Any]) -> str:
        """A token of 16 characters for JSON values; equal ones share it, so viewers do too."""
        text = json.dumps(held, sort_keys=True)
        token = hashlib.blake2s(text.encode(), digest_size=8).hexdigest()
        with self._lock:
            self._kept[token] = text
            self._kept.move_to_end(token)
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return token

    def recall(self, token: object) -> dict[str, Any]:
        """A copy of what the token stands for; empty for one that says nothing."""
        if not isinstance(token, str) or len(token) > MAX_TOKEN:
            return {}
        with self._lock:
            text = self._kept.get(token)
            if text is None:
                return {}
            self._kept.move_to_end(token)
        found: dict[str, Any] = json.loads(text)
        return found
