"""A filled form as one value of an address: a page that is loaded again still has it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any

KEY = "form"
MAX_LENGTH = 4000


def kept_form(
    query: Iterable[tuple[str, str]], names: Collection[str], numbers: Collection[str]
) -> dict[str, Any]:
    """Values of the fields `names`; whatever else an address says is left out.

    Of `numbers` a 0 means empty: that is how a browser sends an empty one (gradio 6.31).
    """
    text = next((value for key, value in query if key == KEY), "")
    try:
        found = json.loads(text) if len(text) <= MAX_LENGTH else {}
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        name: value
        for name, value in found.items()
        if name in names and _is_plain(value) and not (name in numbers and value == 0)
    }


def _is_plain(value: object) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, str | int) for one in value)
    return isinstance(value, str | int | float) and value != ""
