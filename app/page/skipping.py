"""A skipped HTML block keeps its properties.

For an output that a handler leaves alone, Gradio 6.31 sends `{"props": {"__type__": "update"}}` to
every HTML block. A block that the browser has not drawn yet, because it stands in a hidden column
or the page is still loading, takes that for all of its properties, and shows an error in the place
of its words for good. `tests/canaries` tells when Gradio no longer does so.
"""

from __future__ import annotations

from typing import Any

from gradio import blocks

_original = blocks.postprocess_update_dict
NOTHING = {"__type__": "update"}


def _without_empty_properties(*given: Any, **named: Any) -> Any:
    found = _original(*given, **named)
    if found.get("props") == NOTHING:
        del found["props"]
    return found


def keep_properties() -> None:
    """Called before pages are built; a second call changes nothing."""
    blocks.postprocess_update_dict = _without_empty_properties
