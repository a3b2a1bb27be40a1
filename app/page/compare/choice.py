"""Which runs are compared: what the browser keeps and sends."""

from __future__ import annotations

import json
from dataclasses import dataclass

from app.views.table import MAX_RUNS
from ringside.rundir import ID_PATTERN


@dataclass(frozen=True)
class Choice:
    """Which runs, in the order of choosing, and which of them is the baseline; "": each its own."""

    runs: tuple[str, ...] = ()
    baseline: str = ""

    def as_text(self) -> str:
        """As the browser keeps it."""
        return json.dumps({"runs": self.runs, "baseline": self.baseline})


def read_choice(text: object) -> Choice:
    """What the browser sent; anything of no sense is left out."""
    try:
        found = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        found = {}
    runs = found.get("runs") if isinstance(found, dict) else None
    ids = [run for run in runs if _is_id(run)] if isinstance(runs, list) else []
    chosen = tuple(dict.fromkeys(ids))[:MAX_RUNS]
    baseline = found.get("baseline") if isinstance(found, dict) else None
    return Choice(chosen, next((run for run in chosen if run == baseline), ""))


def _is_id(value: object) -> bool:
    return isinstance(value, str) and ID_PATTERN.fullmatch(value) is not None
