"""Who did what: one line in the server's log for everything that a person changes on the page.

    2026-11-30 14:02:11 audit who=local from=127.0.0.1 what=delete about=20261130-… outcome=done

A line is written whatever comes of it: `done`, or the sentence that refused it, in English. Values
that are more than one plain word stand in quotes, so that nothing a person typed can look like a
line.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from ringside.errors import RingsideError
from ringside.words import remembering

log = logging.getLogger("ringside.audit")

LOCAL = "local"
"""Who acts on a page without a login: it is served to this machine alone."""

MAX_LENGTH = 300


@dataclass
class _Line:
    """What the line under way will say besides who and what."""

    about: list[str] = field(default_factory=list)
    outcome: str = "done"


_line: ContextVar[_Line | None] = ContextVar("line", default=None)
_PLAIN = re.compile(r"[\w.:/@+-]+", re.ASCII)


@contextmanager
def audited(what: str, who: str | None = None, where: str | None = None) -> Iterator[None]:
    """One line for what happens inside; `who` is the login's user, `where` the address."""
    with remembering() as english:
        yield from _line_of(what, who, where, english)


def _line_of(
    what: str, who: str | None, where: str | None, english: Callable[[str], str]
) -> Iterator[None]:
    line = _Line()
    token = _line.set(line)
    try:
        yield
    except RingsideError as error:
        line.outcome = str(error)
        raise
    except BaseException as error:
        line.outcome = f"broke: {type(error).__name__}"
        raise
    finally:
        _line.reset(token)
        words = {
            "who": who or LOCAL, "from": where, "what": what, "about": " ".join(line.about),
            "outcome": english(line.outcome),
        }  # fmt: skip
        text = " ".join(f"{name}={_quoted(value)}" for name, value in words.items() if value)
        log.info("audit %s", text)


def about(*subjects: object) -> None:
    """What the line under way is about: a run's id, the name of the data."""
    if (line := _line.get()) is not None:
        line.about += [str(subject) for subject in subjects if subject]


def refused(sentence: str) -> None:
    """The line under way is about something that was refused, and told, where it was asked."""
    if (line := _line.get()) is not None:
        line.outcome = sentence


def to_standard_error() -> None:
    """Let the lines reach the server's log, which is its standard error; once is enough."""
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)


def _quoted(value: str) -> str:
    short = value if len(value) <= MAX_LENGTH else value[:MAX_LENGTH] + "…"
    return short if _PLAIN.fullmatch(short) else json.dumps(short)
