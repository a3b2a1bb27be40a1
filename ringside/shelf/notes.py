"""What people say about a run, apart from what the run's own processes write: `RUN/notes.json`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated

import msgspec
from msgspec import Meta

from ringside.errors import RunDirError, SpecError
from ringside.rundir import RunDir, check_format
from ringside.spec import FORMAT
from ringside.words import say

MAX_TAGS = 20
MAX_TAG_LENGTH = 40
MAX_NOTE_LENGTH = 2000

# What stands between tags, or in front of one on the command line, cannot be part of one.
_TAG = re.compile(r"[^\s,;+\-][^\s,;]*")
_Tag = Annotated[str, Meta(max_length=MAX_TAG_LENGTH)]


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """Tags in the order they were given, one text, and whether the run is put away."""

    format: int = FORMAT
    tags: Annotated[tuple[_Tag, ...], Meta(max_length=MAX_TAGS)] = ()
    note: Annotated[str, Meta(max_length=MAX_NOTE_LENGTH)] = ""
    archived: bool = False


NOTHING = Notes()


def read_notes(run: RunDir) -> Notes:
    """What is said about a run; a file that cannot be read says nothing."""
    return run.read(run.notes, Notes) or NOTHING


def edit_notes(
    run: RunDir,
    *,
    add: Iterable[str] = (),
    remove: Iterable[str] = (),
    tags: Iterable[str] | None = None,
    note: str | None = None,
    archived: bool | None = None,
) -> Notes:
    """Change what is given and keep the rest; with `tags` these replace the old ones.

    Raises SpecError for a tag or a note that cannot be, RunDirError where the file can neither be
    understood nor written.
    """
    from ringside.launch.locks import locked

    if not run.spec.exists():
        raise RunDirError(say("shelf.no_run", run=run.id))
    add, remove = _checked(add), _checked(remove)
    tags = None if tags is None else _checked(tags)
    note = None if note is None else checked_note(note)
    # Two people may write at once: neither may lose what the other one said.
    with locked(run.path.parent, f"{run.id}.notes"):
        old = _read_strictly(run)
        new = Notes(
            tags=_changed(old.tags if tags is None else tags, add, remove),
            note=old.note if note is None else note,
            archived=old.archived if archived is None else archived,
        )
        if new != old:
            run.write(run.notes, new)
    return new


def split_tags(text: str) -> list[str]:
    """The tags of one line: words, with commas, semicolons or spaces between them."""
    return [word for word in re.split(r"[\s,;]+", text) if word]


def checked_note(text: str) -> str:
    """The text without control characters and space around it; SpecError when it is too long."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    note = "".join(c for c in lines if c == "\n" or c.isprintable()).strip()
    if len(note) > MAX_NOTE_LENGTH:
        raise SpecError(say("shelf.long_note", n=len(note), limit=MAX_NOTE_LENGTH))
    return note


def _checked(tags: Iterable[str]) -> tuple[str, ...]:
    found = tuple(tags)
    for tag in found:
        if not (_TAG.fullmatch(tag) and tag.isprintable() and len(tag) <= MAX_TAG_LENGTH):
            raise SpecError(say("shelf.bad_tag", tag=tag[:100], limit=MAX_TAG_LENGTH))
    return found


def _changed(old: Iterable[str], add: Iterable[str], remove: Iterable[str]) -> tuple[str, ...]:
    """Each tag once, whether it is written small or large."""
    gone = {tag.casefold() for tag in remove}
    found: dict[str, str] = {}
    for tag in (*old, *add):
        if tag.casefold() not in gone:
            found.setdefault(tag.casefold(), tag)
    if len(found) > MAX_TAGS:
        raise SpecError(say("shelf.many_tags", n=len(found), limit=MAX_TAGS))
    return tuple(found.values())


def _read_strictly(run: RunDir) -> Notes:
    """What is there, or a RunDirError rather than writing over what somebody wrote by hand."""
    try:
        data = run.notes.read_bytes()
    except FileNotFoundError:
        return NOTHING
    except OSError as error:
        raise RunDirError(say("shelf.unreadable", path=run.notes, why=error.strerror)) from None
    try:
        notes = msgspec.json.decode(data, type=Notes)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RunDirError(say("shelf.unreadable", path=run.notes, why=error)) from None
    check_format(notes.format, str(run.notes))
    return notes
