"""How people call a run."""

from __future__ import annotations

from pathlib import Path

from ringside.rundir import RunDir


def short_name(run_id: str) -> str:
    """The two words of a run's id."""
    return RunDir(Path(run_id)).name
