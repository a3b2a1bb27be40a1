"""What stands below the cause of a failure: where, what came last, how to go on, which files."""

from __future__ import annotations

from ringside.run import RunRecord
from ringside.words import say
from ringside.words.retelling import retold


def failure_lines(record: RunRecord) -> tuple[str, ...]:
    """Sentences about a failed run, the most useful first; empty for every other one."""
    failure = record.exit.failure if record.exit else None
    if failure is None:
        return ()
    # How to go on is no question where another try goes on already.
    is_tried = record.exit is not None and record.exit.retried_as is not None
    lines = [retold(line) for line in (failure.where, None if is_tried else failure.advice) if line]
    if failure.last_collective:
        lines.append(say("ending.last_collective", what=retold(failure.last_collective)))
    if failure.evidence:
        names = ", ".join(failure.evidence)
        lines.append(say("ending.evidence", folder=record.path, names=names))
    return tuple(lines)
