"""Traces on their way to the browser: Gradio hands out what lies in its own folder only."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from ringside.errors import RunDirError
from ringside.rundir import RunDir, iter_files
from ringside.words import say


def taken(run: RunDir, cache: Path) -> list[str]:
    """Copies of the run's traces below `cache`, in a folder of this state of them; made once.

    Gradio deletes what is a day old. RunDirError when there is none or no room.
    """
    sources = list(iter_files(run.trace, "*.json.gz"))
    if not sources:
        raise RunDirError(say("consult.traces_gone", run=run.name))
    try:
        newest = max(source.stat().st_mtime_ns for source in sources)
        folder = cache / f"{run.id}-{newest}"
        folder.mkdir(parents=True, exist_ok=True)
        return [str(_copy(source, folder)) for source in sources]
    except OSError:
        raise RunDirError(say("consult.traces_gone", run=run.name)) from None


def _copy(source: Path, folder: Path) -> Path:
    target = folder / source.name
    if not target.exists():
        part = target.with_suffix(".part")
        shutil.copyfile(source, part)
        with suppress(FileNotFoundError):
            part.replace(target)
    return target
