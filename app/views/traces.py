"""Where a run's traces are and what reads them."""

from __future__ import annotations

from pathlib import Path

from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.words import say

MAX_NAMES = 4


def trace_lines(record: RunRecord) -> tuple[str, ...]:
    """Sentences about the newest traces; empty without any."""
    if not record.traces:
        return ()
    names = ", ".join(record.traces[:MAX_NAMES])
    if len(record.traces) > MAX_NAMES:
        names += say("run.more_traces", n=len(record.traces) - MAX_NAMES)
    profile, name = record.profiles[-1], RunDir(Path(record.path)).name
    return (
        say("run.traces", n=profile.num_steps, step=profile.step, names=names, run=name),
        say("run.perfetto"),
    )
