"""Commands of the shelf: tags, note, archive, delete, leftovers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from app.commands.printing import printable
from app.commands.reading import print_columns, print_json
from app.views import figures
from ringside.errors import RunDirError
from ringside.rundir import RunDir, find_run, runs_root
from ringside.shelf.leftovers import Leftover
from ringside.shelf.notes import edit_notes, read_notes
from ringside.words import say


def tag(run_id: str, changes: list[str]) -> None:
    """Change the tags and print those that are there then, one a line."""
    run = find_run(runs_root(), run_id)
    gone = [word[1:] for word in changes if word.startswith("-")]
    new = [word.removeprefix("+") for word in changes if not word.startswith("-")]
    notes = edit_notes(run, add=new, remove=gone) if changes else read_notes(run)
    for one in notes.tags:
        print(printable(one))
    if not notes.tags:
        print(say("shelf.no_tags", run=run.name), file=sys.stderr)


def note(run_id: str, text: str | None) -> None:
    """Write the note, or print it."""
    run = find_run(runs_root(), run_id)
    notes = read_notes(run) if text is None else edit_notes(run, note=text)
    for line in notes.note.splitlines():
        print(printable(line))
    if not notes.note:
        print(say("shelf.no_note", run=run.name), file=sys.stderr)


def archive(run_id: str, *, undo: bool) -> None:
    """Put a run away, or bring it back."""
    run = find_run(runs_root(), run_id)
    edit_notes(run, archived=not undo)
    print(say("shelf.unarchived" if undo else "shelf.archived", run=run.name))


def delete(run_ids: list[str], *, yes: bool) -> int:
    """Say how much it is, ask, delete; nothing is deleted when one of them must not be.

    Returns 1 when all are out of the list, but something of them could not be removed.
    """
    from ringside.shelf.deleting import check_deletable, move_aside, require_deletable, size_of

    root = runs_root()
    runs = list({run.id: run for run in map(_named_whole, run_ids)}.values())
    for run in runs:
        check_deletable(root, run)
    sizes = [size_of(run) for run in runs]
    lines = [
        say("shelf.one", run=run.id, size=figures.size(size.num_bytes), n=f"{size.num_files:,}")
        for run, size in zip(runs, sizes, strict=True)
    ]
    print("\n".join(lines))
    total = figures.size(sum(size.num_bytes for size in sizes))
    what = runs[0].name if len(runs) == 1 else say("shelf.total", n=len(runs), size=total)
    if not (yes or _agreed(say("shelf.ask_terminal", what=what))):
        print(say("shelf.kept"))
        return 0
    ended = [require_deletable(root, run) for run in runs]
    try:
        for run, size, num_ended in zip(runs, sizes, ended, strict=True):
            move_aside(root, run)
            print(_deleted(run, figures.size(size.num_bytes), num_ended))
    finally:
        emptied = _emptied(root)
    return 0 if emptied else 1


def _deleted(run: RunDir, size: str, num_ended: int) -> str:
    if not num_ended:
        return say("shelf.deleted", run=run.id, size=size)
    key = "shelf.deleted_ended_one" if num_ended == 1 else "shelf.deleted_ended"
    return say(key, run=run.id, size=size, n=num_ended)


def _emptied(root: Path) -> bool:
    from ringside.shelf.deleting import empty_trash

    try:
        empty_trash(root)
    except RunDirError as error:
        print(error, file=sys.stderr)
        return False
    return True


def leftovers(*, as_json: bool, clean: bool) -> int:
    """List what is left over, or end it; 1 when something could not be ended."""
    from ringside.shelf.leftovers import end_leftovers, find_leftovers

    root = runs_root()
    found = find_leftovers(root)
    left = end_leftovers(root) if clean and found else found
    if as_json:
        print_json([msgspec.to_builtins(one) for one in left])
    else:
        _print_leftovers(found, left, clean=clean)
    return 1 if clean and left else 0


def _print_leftovers(found: list[Leftover], left: list[Leftover], *, clean: bool) -> None:
    print_columns([_cells(one) for one in found])
    if not found:
        print(say("shelf.clear"), file=sys.stderr)
    elif not clean:
        for line in _orphan_lines(found):
            print(line, file=sys.stderr)
        print(say("shelf.left_hint"), file=sys.stderr)
    elif left:
        pids = ", ".join(str(one.pid) for one in left)
        print(say("shelf.survivors", pids=pids), file=sys.stderr)
    else:
        print(say("shelf.ended_count", n=len(found)))


def _orphan_lines(found: list[Leftover]) -> Iterator[str]:
    """Of the runs that are lost without a record: they may still train, which is no leftover."""
    from ringside.launch.reconcile import orphan_sentence

    for run in (RunDir(runs_root() / run_id) for run_id in sorted({one.run for one in found})):
        if sentence := orphan_sentence(run):
            yield say("following.told", run=run.name, sentence=sentence)


def _cells(one: Leftover) -> tuple[str, ...]:
    return (
        one.run, say(f"state.{one.state}"), str(one.pid), figures.clock(one.started),
        figures.size(one.memory_bytes), printable(one.command[:120]),
    )  # fmt: skip


def _named_whole(text: str) -> RunDir:
    """The run; what deletes does not guess."""
    run = find_run(runs_root(), text)
    if text not in (run.id, run.name):
        raise RunDirError(say("shelf.whole_name", name=run.name, id=run.id, text=text))
    return run


def _agreed(question: str) -> bool:
    import typer

    if not sys.stdin.isatty():
        raise RunDirError(say("shelf.not_asked"))
    return typer.confirm(question)
