"""The colours of charts. Each stands in `style.css` too, under the same name, for both themes.

Pictures are drawn once, in the light colours. On the page each colour becomes the variable of the
style sheet, so that the picture follows the theme; in a file it stays as it is.
"""

from __future__ import annotations

INK, SOFT, LINE, TRACK = "#14181f", "#5b6573", "#e3e7ed", "#f7f8fa"
ACCENT = "#0f766e"
COMPUTE, TRANSFER, WAIT = "#0072b2", "#d55e00", "#e69f00"
DATA, OPTIMIZER, OTHER = "#8f5aa8", "#56b4e9", "#9aa3af"
BACKWARD, OTHER_2, OTHER_3 = "#3891c3", "#c2c8cf", "#e1e4e7"
ON_COLOUR, CARD = "#ffffff", "#fefefe"
ON_LIGHT = "#0b1016"
"""Text on the light ones of the colours, in both themes."""

RUNS = (
    "#1f5fa8", "#c2410c", "#0e7a4e", "#7e3f98", "#946700", "#0b7f96", "#b0246b", "#4a5361",
)  # fmt: skip
"""Runs over each other, by their place; never a part of a step, and each with a pattern too."""

RUN_DASHES: tuple[list[int], ...] = (
    [1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [5, 2], [12, 4], [3, 2, 1, 2], [1, 2],
)  # fmt: skip

VARIABLES = {
    INK: "ink", SOFT: "soft", LINE: "line", TRACK: "bg", ACCENT: "accent", COMPUTE: "compute",
    TRANSFER: "transfer", WAIT: "wait", DATA: "data", OPTIMIZER: "optimizer", OTHER: "other",
    ON_COLOUR: "on-colour", CARD: "card", BACKWARD: "backward", OTHER_2: "other-2",
    OTHER_3: "other-3",
    **{colour: f"run-{number}" for number, colour in enumerate(RUNS, start=1)},
}  # fmt: skip

PARTS = {
    "compute": COMPUTE, "forward": COMPUTE, "backward": BACKWARD, "transfer": TRANSFER,
    "wait": WAIT, "data": DATA, "optimizer": OPTIMIZER, "copies": OPTIMIZER, "host": OTHER,
    "gaps": OTHER_2, "other": OTHER_3, "rest": OTHER, "idle": OTHER,
}  # fmt: skip
"""What fills a step, and its colour; beside each colour stands its word."""

LIGHT = frozenset({WAIT, OPTIMIZER, OTHER, OTHER_2, OTHER_3})


def text_on(colour: str) -> str:
    """The colour of text on a filled part."""
    return ON_LIGHT if colour in LIGHT else ON_COLOUR
