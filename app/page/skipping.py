"""What a handler leaves alone costs nothing and changes nothing.

Gradio 6.31 builds every output that was skipped anew, with its configuration: for the 45 outputs of
a poll more work than all else together. And what it sends for a skipped HTML block,
`{"props": {"__type__": "update"}}`, a block that the browser has not drawn yet takes for all of its
properties: an error stands in the place of its words for good. `tests/canaries` tells when either
has ended.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import gradio as gr
from gradio.blocks import Block


class ChangedOnly(gr.Blocks):
    """Blocks whose handlers answer for the outputs that they change, and for no others."""

    async def postprocess_data(
        self, block_fn: Any, predictions: list[Any] | dict[Any, Any], state: Any
    ) -> list[Any]:
        """As Gradio's, for what is changed; the others are skipped by a constant."""
        values = _by_output(block_fn.outputs, predictions)
        if values is None:
            return list(await super().postprocess_data(block_fn, predictions, state))
        some = copy.copy(block_fn)
        some.outputs = [part for part in block_fn.outputs if part in values]
        given = [values[part] for part in some.outputs]
        # Gradio wraps what comes for a single output itself.
        told = await super().postprocess_data(some, given[0] if len(given) == 1 else given, state)
        by_output = dict(zip(some.outputs, told, strict=True))
        return [by_output.get(part, gr.skip()) for part in block_fn.outputs]


def _by_output(outputs: Sequence[Block], predictions: Any) -> dict[Block, Any] | None:
    """What each output gets, without the skipped ones; None for what Gradio should judge itself."""
    if _is_skip(predictions):
        return {}
    if isinstance(predictions, dict) and predictions and set(predictions) <= set(outputs):
        return {part: value for part, value in predictions.items() if not _is_skip(value)}
    return None


def _is_skip(value: object) -> bool:
    return isinstance(value, dict) and value == gr.skip()
