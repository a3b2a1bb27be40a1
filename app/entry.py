"""Where the `ringside` command begins.

Typer and what it loads take about 100 ms. `ringside list` is typed in loops and prompts, so
its plain forms are answered without them; everything else, help and mistakes included, is Typer's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from ringside.words import DEFAULT, language_of, speak

DEFAULT_LIMIT = 50


def main() -> None:
    """Answer `ringside list [--json] [--limit N]` at once, or hand over to the whole command."""
    choose_language(sys.argv[1:], os.environ)
    options = quick_list(sys.argv[1:])
    if options is None:
        from app.cli import main as whole

        whole()
        return
    from app.commands.reading import list_runs

    as_json, limit = options
    try:
        list_runs(as_json=as_json, limit=limit)
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()


def choose_language(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """People are told in their language; programs, which ask with --json, always in English."""
    language, complaint = language_of(environment)
    if complaint:
        print(complaint, file=sys.stderr)
    speak(DEFAULT if "--json" in words else language)


def drop_output() -> None:
    """The reader (head, less) has seen enough; nothing may be flushed into the pipe at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def quick_list(words: list[str]) -> tuple[bool, int] | None:
    """(as_json, limit) when the words are a plain `list`, else None."""
    if words[:1] != ["list"]:
        return None
    as_json, limit, rest = False, DEFAULT_LIMIT, words[1:]
    while rest:
        word = rest.pop(0)
        if word == "--json":
            as_json = True
        elif word == "--limit" and rest and rest[0].isdecimal() and rest[0] != "0":
            limit = int(rest.pop(0))
        else:
            return None
    return as_json, limit
