"""Finds out how a table writes its labels, and reads them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ringside.data.folder.table import Cell, Table
from ringside.data.images import Task
from ringside.data.notes import Note, first_few
from ringside.errors import DataError

LABEL_SEPARATORS = {"\n": "line break", ";": "semicolon", "|": "bar", ",": "comma"}
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


def read_labels(table: Table) -> Labels:
    """The task and the labels of every row.

    `label` holds one class per image and is never cut. `labels` holds any number: a list, or text
    with the first separator that occurs in the column, tried in the order line break, `;`, `|`,
    `,`. Names such as class and tags stand for them where neither exists. Without any, every
    other column is a class when its cells are all 0 or 1 (or true and false).
    Raises `DataError` when none of these fits.
    """
    found = table.known("label", "labels") or table.known(*ONE_LABEL, *MANY_LABELS)
    if len(found) > 1:
        raise DataError(
            f"{table.path} has both {' and '.join(found)}: remove one column, or rename the one "
            "to use to label (one class per image) or labels (any number)."
        )
    if not found:
        return _from_flags(table)
    column = found[0]
    if table.known(*MANY_LABELS):
        return _from_lists(table, column)
    rows: list[tuple[str, ...]] = [(text,) if text else () for text in table.texts(column)]
    return Labels("single_label", rows, f"one class per image in column {column}")


def _from_lists(table: Table, column: str) -> Labels:
    cells: list[Cell] = [_unbracketed(cell) for cell in table.cells(column)]
    texts = [cell for cell in cells if isinstance(cell, str)]
    separator = next(
        (s for s in LABEL_SEPARATORS if any(s in text.strip() for text in texts)), None
    )
    rows = [
        _clean(cell if isinstance(cell, list) else cell.split(separator) if separator else [cell])
        for cell in cells
    ]
    layout = f"labels in column {column}, "
    if separator:
        layout += f"separated by a {LABEL_SEPARATORS[separator]}"
        return Labels("multi_label", rows, layout)
    layout += "as lists" if len(texts) < len(cells) else "one label per cell"
    return Labels("multi_label", rows, layout, _note_on_blanks(table, column, texts))


def _note_on_blanks(table: Table, column: str, texts: list[str]) -> list[Note]:
    """Names may hold blanks, so these never separate; where they seem to, say it."""
    names = {text.strip() for text in texts if text.strip()}
    words = {word for name in names for word in name.split()}
    if not any(len(name.split()) > 1 for name in names) or len(words) >= len(names):
        return []
    return [
        Note(
            "blanks",
            f"{table.path}: {column} has {len(names)} different texts made of {len(words)} words, "
            f"such as {max(names, key=len)!r}. Labels are not separated at blanks: write ; "
            "between them if each word is a label.",
        )
    ]


def _unbracketed(cell: Cell) -> Cell:
    """A list written as text, `["red", "blue"]` or `['red', 'blue']`, as a list."""
    if isinstance(cell, list) or not (cell.strip().startswith("[") and cell.strip().endswith("]")):
        return cell
    try:
        items = msgspec.json.decode(cell, type=list[str])
    except msgspec.DecodeError:
        # numpy prints ['red' 'blue'], which Python would read as one text, 'redblue'.
        text = re.sub(r"""(['"])\s+(['"])""", r"\1, \2", cell.strip())
        try:
            items = [str(item) for item in ast.literal_eval(text)]
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return cell
    return items


def _clean(parts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _from_flags(table: Table) -> Labels:
    others = {table.image_column, *table.known("split")}
    classes = [column for column in table.columns if column not in others]
    flags = {name: _flags(table.columns[name]) for name in classes}
    no_flags = [name for name, values in flags.items() if values is None]
    if no_flags or not classes:
        named = f", see {first_few(no_flags)}" if no_flags else ""
        raise DataError(
            f"{table.path} has no column label or labels, and not every other column is 0 or 1"
            f"{named} (columns: {', '.join(table.columns)}): name the column of the labels."
        )
    rows: list[tuple[str, ...]] = [
        tuple(name for name in classes if (values := flags[name]) and values[i])
        for i in range(table.num_rows)
    ]
    return Labels("multi_label", rows, "one column of 0 and 1 per label")


def _flags(values: list[object]) -> list[bool] | None:
    texts = [str(value).strip().lower() for value in values]
    return [FLAGS[text] for text in texts] if set(texts) <= set(FLAGS) else None
