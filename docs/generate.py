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
from ringside.importing import import_text
from ringside.preset_pages import page as preset_page
from ringside.preset_pages import table as linked_table
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
PRESETS, LIBRARY_README = DOCS / "presets", DOCS.parent / "accelerate_configs" / "README.md"
IMPORTS, FIELD_FILES = DOCS / "imports.md", DOCS.parent / "tests" / "importing" / "files"
IMPORTS_HEAD = """# What becomes of configurations

Written by `make docs`: each file of `tests/importing/files` as `ringside presets import` reads it.
The files are ours; each has the features of one that was met where the last column says.

| file | outcome | what is said of it | met in |
| --- | --- | --- | --- |
"""
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


def library_readme(text: str) -> str:
    """The text of `accelerate_configs/README.md` with the current table and its links."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    built_in = [preset for preset in Library() if preset.origin == BUILT_IN]
    return f"{before}{begin}\n{linked_table(built_in, '../docs/presets')}\n{end}{after}"


def preset_pages() -> dict[str, str]:
    """The files of `presets/` by name."""
    built_in = [preset for preset in Library() if preset.origin == BUILT_IN]
    return {f"{preset.name}.md": preset_page(preset) for preset in built_in}


def imports_page() -> str:
    """`imports.md`: a line for each configuration of the field."""
    lines = (FIELD_FILES / "sources.tsv").read_text(encoding="utf-8").splitlines()[1:]
    met = dict(line.split("\t") for line in lines)
    rows = []
    for path in sorted(FIELD_FILES.glob("*.yaml")):
        outcome, said = _import_line(path)
        cells = (
            path.stem,
            outcome,
            said.replace("|", "\\|"),
            met.get(str(int(path.name[:2])), "–"),
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    return IMPORTS_HEAD + "".join(rows)


def _import_line(path: Path) -> tuple[str, str]:
    found = import_text(path.read_bytes(), origin=path.name)
    if found.refused is not None:
        return "refused", found.refused.removeprefix(f"{path.name}: ")
    changed = [one for one in found.changes if one.action in ("mapped", "translated")]
    said = [*found.warnings, *(f"`{one.key}`: {one.note}" for one in changed)]
    return "translated" if changed else "loaded", " · ".join(dict.fromkeys(said)) or "–"


def check_pages() -> dict[str, str]:
    """The files of `checks/` by name."""
    return {"README.md": index(), **{f"{one.code}.md": page(one) for one in entries()}}


def commands(
    group: Any, words: tuple[str, ...] = ("ringside",)
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that lead to it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            if command.invoke_without_command:
                yield (*words, name), command
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
    library = LIBRARY_README.read_text(encoding="utf-8")
    write_atomic(LIBRARY_README, library_readme(library).encode())
    write_atomic(IMPORTS, imports_page().encode())
    for folder, pages in ((CHECKS, check_pages()), (PRESETS, preset_pages())):
        folder.mkdir(exist_ok=True)
        for path in folder.glob("*.md"):
            if path.name not in pages:
                path.unlink()
        for name, text in pages.items():
            write_atomic(folder / name, text.encode())


if __name__ == "__main__":
    main()
