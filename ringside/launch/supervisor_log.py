"""Lines of a run's supervisor.log: what went wrong where nobody was there to be told."""

from __future__ import annotations

import time
from contextlib import suppress

from ringside.rundir import RunDir


def note(run: RunDir, sentence: str) -> None:
    """Append one line with the time; on a full disk there is none."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError), run.supervisor_log.open("a", encoding="utf-8") as stream:
        stream.write(f"{clock} {sentence}\n")
