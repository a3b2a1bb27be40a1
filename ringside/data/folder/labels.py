"""Finds out how a table writes its labels, and reads them."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from ringside.data.folder.table import Cell, Table
from ringside.data.images import Task
from ringside.data.notes import Note, joined
from ringside.errors import DataError
from ringside.spec import Separator
from ringside.words import say, say_few

LABEL_SEPARATORS: dict[Separator, str] = {
    "\n": "line_break", ";": "semicolon", "|": "bar", ",": "comma",
}  # fmt: skip
ONE_LABEL = ("label", "class", "category", "class_name")
MANY_LABELS = ("labels", "tags", "classes", "categories")
FLAGS = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}


@dataclass(frozen=True)
class Labels:
    """The labels of every row; `layout` says how they were written.

    A row of a single-label table without its label has none.
    """

    task: Task
    rows: list[tuple[str, ...]]
    layout: str
    notes: Sequence[Note] = ()


def read_labels(table: Table, separator: Separator | None = None) -> Labels:
    """The task and the labels of every row.

    `label` holds one class per image and is never cut. `labels` holds any number: a list, or text
    with the first separator that occurs in the column, tried in the order line break, `;`, `|`,
    `,`. Names such as class and tags stand for them where neither exists. Without any, every
    other column is a class when its cells are all 0 or 1 (or true and false).
    A given `separator` cuts the texts of either column, and `none` cuts none of them.
    Raises `DataError` when none of these fits.
    """
    found = table.known("label", "labels") or table.known(*ONE_LABEL, *MANY_LABELS)
    if len(found) > 1:
        raise DataError(say("dataset.two_label_columns", path=table.path, names=joined(found)))
    if not found:
        if separator is not None:
            raise _no_text_to_cut(say("dataset.one_column_per_label", path=table.path))
        return read_flags(table)
    return read_column(table, found[0], bool(table.known(*MANY_LABELS)), separator)


def read_column(
    table: Table, column: str, holds_many: bool, separator: Separator | None = None
) -> Labels:
    """The labels of one column, as `label` (or with `holds_many` as `labels`) in `read_labels`."""
    if holds_many or separator not in (None, "none"):
        return _from_lists(table, column, separator)
    rows: list[tuple[str, ...]] = [(text,) if text else () for text in table.texts(column)]
    return Labels("single_label", rows, say("data_layout.one_class", column=column))


def _from_lists(table: Table, column: str, chosen: Separator | None) -> Labels:
    cells = table.cells(column)
    if chosen != "none":  # else a text in brackets is a label too
        cells = [_unbracketed(cell) for cell in cells]
    texts = [cell for cell in cells if isinstance(cell, str)]
    if chosen and not any(texts):
        raise _no_text_to_cut(say("dataset.holds_lists", path=table.path, column=column))
    found = [s for s in LABEL_SEPARATORS if any(s in text.strip() for text in texts)]
    separator = chosen or (found[0] if found else "none")
    rows = [
        _clean([cell] if separator == "none" else cell.split(separator))
        if isinstance(cell, str)
        else _clean(cell)
        for cell in cells
    ]
    if separator != "none":
        name = say(f"data_layout.{LABEL_SEPARATORS[separator]}")
        how = say("data_layout.separated", name=name)
    else:
        is_list = len(texts) < len(cells)
        how = say("data_layout.lists" if is_list else "data_layout.one_per_cell")
    if separator not in (*found, "none"):
        how = say("data_layout.nowhere", how=how)
    elif chosen:
        how = say("data_layout.as_chosen", how=how)
    layout = say("data_layout.column", column=column, how=how)
    notes = [] if chosen or separator != "none" else _note_on_blanks(table, column, texts)
    return Labels("multi_label", rows, layout, notes)


def parse_separator(text: str) -> Separator:
    """The separator that a person means: the character, or its name."""
    names: dict[str, Separator] = {
        "newline": "\n", "\\n": "\n", "semicolon": ";", "bar": "|", "comma": ",", "none": "none",
    }  # fmt: skip
    named = names.get(text.strip().lower())
    found = named or next((known for known in LABEL_SEPARATORS if known == text), None)
    if found:
        return found
    raise DataError(say("dataset.bad_separator", text=text))


def _no_text_to_cut(why: str) -> DataError:
    return DataError(say("dataset.no_separator", why=why))


def _note_on_blanks(table: Table, column: str, texts: list[str]) -> list[Note]:
    """Names may hold blanks, so these never separate; where they seem to, say it."""
    names = {text.strip() for text in texts if text.strip()}
    words = {word for name in names for word in name.split()}
    if not any(len(name.split()) > 1 for name in names) or len(words) >= len(names):
        return []
    return [
        Note(
            "blanks",
            say(
                "data_note.blanks",
                path=table.path,
                column=column,
                n=len(names),
                words=len(words),
                longest=max(names, key=len),
            ),
        )
    ]


def _unbracketed(cell: Cell) -> Cell:
    """A list written as text, `["red", "blue"]`, `['red', 'blue']` or `[007, 1e5]`, as a list."""
    if isinstance(cell, list) or not (cell.strip().startswith("[") and cell.strip().endswith("]")):
        return cell
    # numpy prints ['red' 'blue'], which Python would read as one text, 'redblue'.
    text = re.sub(r"""(['"])\s+(['"])""", r"\1, \2", cell.strip())
    readers: tuple[Callable[[str], object], ...] = (msgspec.json.decode, ast.literal_eval)
    for read in readers:
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            items = read(text)
            if isinstance(items, list) and all(isinstance(item, str) for item in items):
                return items
    # Without quotes nothing may be read as a number. One word in brackets is a name, [draft].
    bare = text[1:-1].split(",")
    is_list = len(bare) > 1 or any(c.isdigit() for c in text)
    return bare if is_list and not set("'\"[]") & set(text[1:-1]) else cell


def _clean(parts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def read_flags(table: Table) -> Labels:
    """Every column but image and split as a class, present where it is 1 or true."""
    others = {table.image_column, *table.known("split")}
    classes = [column for column in table.columns if column not in others]
    flags = {name: _flags(table.columns[name]) for name in classes}
    no_flags = [name for name, values in flags.items() if values is None]
    if no_flags or not classes:
        named = say("dataset.flags_see", names=say_few(no_flags)) if no_flags else ""
        raise DataError(
            say("dataset.no_labels", path=table.path, named=named, columns=", ".join(table.columns))
        )
    rows: list[tuple[str, ...]] = [
        tuple(name for name in classes if (values := flags[name]) and values[i])
        for i in range(table.num_rows)
    ]
    return Labels("multi_label", rows, say("data_layout.flags"))


def _flags(values: list[object]) -> list[bool] | None:
    texts = [str(value).strip().lower() for value in values]
    return [FLAGS[text] for text in texts] if set(texts) <= set(FLAGS) else None
