"""What stands below the cause of a failure: where, what came last, how to go on, which files."""

from __future__ import annotations

from pathlib import Path

from ringside.checkpoints import find_resumable, read_about
from ringside.errors import RunDirError
from ringside.identity import run_processes
from ringside.launch.verdict import has_trained_all
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.words import say
from ringside.words.retelling import retold


def failure_lines(record: RunRecord) -> tuple[str, ...]:
    """Sentences about a failed or lost run, the most useful first; empty for every other one."""
    failure = record.exit.failure if record.exit else None
    if failure is None:
        return _lost_lines(record)
    # How to go on is no question where another try goes on already.
    is_tried = record.exit is not None and record.exit.retried_as is not None
    lines = [retold(line) for line in (failure.where, None if is_tried else failure.advice) if line]
    if failure.last_collective:
        lines.append(say("ending.last_collective", what=retold(failure.last_collective)))
    if failure.evidence:
        names = ", ".join(failure.evidence)
        lines.append(say("ending.evidence", folder=record.path, names=names))
    return tuple(lines)


def _lost_lines(record: RunRecord) -> tuple[str, ...]:
    """How a lost run goes on; nothing where all is trained, or where processes of it still do."""
    run = RunDir(Path(record.path))
    # The page asks again and again: the files are not read through here, as a failure's are once.
    folder = find_resumable(run) if record.state == "lost" else None
    if folder is None or has_trained_all(run) or run_processes(run.id):
        return ()
    try:
        step = read_about(folder).step
    except RunDirError:
        return ()  # Damaged: nobody can go on from it.
    return (say("ended.resume", run=run.name, step=step or 0),)
