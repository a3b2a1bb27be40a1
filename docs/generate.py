"""Writes what the documents take from the code: presets, checks and commands.

    python docs/generate.py

The table stands in README.md between two markers; a README without them is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from app.cli import app
from ringside.doctor.pages import entries, index, page
from ringside.presets import BUILT_IN, Library, json_schema
from ringside.rundir import write_atomic

DOCS = Path(__file__).resolve().parent
SCHEMA, README = DOCS / "preset.schema.json", DOCS.parent / "README.md"
COMMANDS = DOCS / "commands.md"
COMMANDS_HEAD = """# Commands

All of them, as `ringside COMMAND --help` tells them.
[What `--json` gives](cli-json.md) is documented apart.
"""
CHECKS = DOCS / "checks"
BEGIN, END = "<!-- presets:begin -->", "<!-- presets:end -->"


def schema_text() -> str:
    """JSON Schema of a preset file, for editors."""
    return json.dumps(json_schema(), indent=2) + "\n"


def preset_table() -> str:
    """The built-in presets as a Markdown table."""
    rows = ["| preset | what it does | when | devices |", "| --- | --- | --- | --- |"]
    for preset in Library():
        if preset.origin == BUILT_IN:
            about = preset.about
            cells = (f"`{preset.name}`", about.why, about.when, ", ".join(about.devices))
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def with_table(text: str) -> str:
    """The README's text with the current table between its markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{BEGIN}\n{preset_table()}\n{END}{after}" if begin and end else text


def check_pages() -> dict[str, str]:
    """The files of `checks/` by name."""
    return {"README.md": index(), **{f"{one.code}.md": page(one) for one in entries()}}


def commands(
    group: Any, words: tuple[str, ...] = ("ringside",)
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that lead to it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield (*words, name), command


def commands_page() -> str:
    """`commands.md`: what each command does, its arguments and its options."""
    parts = [COMMANDS_HEAD]
    for words, command in commands(typer.main.get_command(app)):
        parts.append(f"\n## {' '.join(words)}\n\n{_paragraph(command.help or '')}\n")
        rows = [_row(parameter) for parameter in command.params if parameter.name != "help"]
        if rows:
            parts.append("\n| | |\n| --- | --- |\n" + "".join(rows))
    return "".join(parts)


def _row(parameter: Any) -> str:
    """Its names, and what it is for."""
    is_option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts] if is_option else [parameter.name.upper()]
    about = _paragraph(getattr(parameter, "help", None) or "").replace("|", "\\|")
    return f"| {', '.join(f'`{name}`' for name in names)} | {about} |\n"


def _paragraph(text: str) -> str:
    return " ".join(text.split())


def main() -> None:
    """Write all of them, and remove the pages of checks that are gone."""
    write_atomic(SCHEMA, schema_text().encode())
    write_atomic(README, with_table(README.read_text(encoding="utf-8")).encode())
    write_atomic(COMMANDS, commands_page().encode())
    pages = check_pages()
    CHECKS.mkdir(exist_ok=True)
    for path in CHECKS.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        write_atomic(CHECKS / name, text.encode())


if __name__ == "__main__":
    main()
