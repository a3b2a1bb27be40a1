"""A page for each code, and their index, from the docstrings of the checks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ringside.doctor.conclusions import CONCLUSIONS
from ringside.doctor.diagnosis import all_checks
from ringside.trace.findings import Cause
from ringside.trace.judging import all_checks as trace_checks

GENERATED = "<!-- from the code's docstrings, by docs/generate.py -->"
LOOKS_AT = {"trace": "traces", "doctor": "runs and machines", "conclusion": "all that was found"}
_PARTS = re.compile(r"^(Seen |What to do: |Sources?: )", re.MULTILINE)
_TITLES = {"Seen ": "Seen", "What to do: ": "What to do"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What a page is made of; `looks_at` is a key of `LOOKS_AT`."""

    code: str
    cause: Cause
    title: str
    body: str
    looks_at: str


def entries() -> tuple[Entry, ...]:
    """All codes in alphabetical order."""
    return tuple(sorted(_entries(), key=lambda entry: entry.code))


def page(entry: Entry) -> str:
    """The Markdown of a code."""
    head, *parts = _PARTS.split(entry.body)
    text = f"{GENERATED}\n# {entry.code}\n\n{entry.title}\n\n"
    text += f"Cause `{entry.cause}`; looks at {LOOKS_AT[entry.looks_at]}. [All codes](README.md)\n"
    if head.strip():
        text += f"\n{head.strip()}\n"
    for mark, part in zip(parts[::2], parts[1::2], strict=True):
        content = part.strip()
        if mark in _TITLES:
            content = content[:1].upper() + content[1:]
        text += f"\n## {_TITLES.get(mark, 'Sources')}\n\n{content}\n"
    return text


def index() -> str:
    """The table of all codes."""
    rows = [
        f"| [{one.code}]({one.code}.md) | `{one.cause}` | {one.title} | {LOOKS_AT[one.looks_at]} |"
        for one in entries()
    ]
    return (
        f"{GENERATED}\n# What the doctor looks for\n\n"
        "`ringside doctor RUN` and `ringside trace FILE` name these codes. Shares are of a step's "
        "wall time; from 10 % on a cause is a warning, from 20 % on it is critical (the bands of "
        "TraceML). Every code has one cause of a closed list; `none` means that nothing is wrong, "
        "`unexplained` that nobody knows.\n\n"
        "| code | cause | what | looks at |\n| --- | --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def _entries() -> Iterator[Entry]:
    for check in trace_checks():
        yield _entry(check.CODE, check.CAUSE, inspect.getdoc(check), "trace")
    for own in all_checks():
        yield _entry(own.CODE, own.CAUSE, inspect.getdoc(own), "doctor")
    for code, conclusion in CONCLUSIONS.items():
        cause: Cause = "none" if code.startswith("NONE") else "unexplained"
        yield _entry(code, cause, inspect.getdoc(conclusion), "conclusion")


def _entry(code: str, cause: Cause, text: str | None, looks_at: str) -> Entry:
    title, _, body = (text or "").partition("\n\n")
    return Entry(code=code, cause=cause, title=title, body=body, looks_at=looks_at)
