"""Finds out how a metadata file writes its labels, and reads them."""

from __future__ import annotations

import ast

from ringside.data.folder.table import Cell, Table
from ringside.data.images import Task
from ringside.errors import DataError

LABEL_SEPARATORS = {"\n": "line break", ";": "semicolon", "|": "bar", ",": "comma"}
OTHER_COLUMNS = ("file_name", "split")


def read_labels(table: Table) -> tuple[Task, list[tuple[str, ...]], list[str]]:
    """The task, the labels of every row, and a note on how they were written.

    `label` holds one class per image and is never cut. `labels` holds any number: a list, or text
    with the first separator that occurs in the column, tried in the order line break, `;`, `|`,
    `,`. Without either, every other column is a class when its cells are all 0 or 1.
    Raises `DataError` when none of these fits.
    """
    has_many, has_one = "labels" in table.columns, "label" in table.columns
    if has_many and has_one:
        raise DataError(f"{table.path} has both label and labels: remove one column.")
    if has_many:
        labels, note = _from_lists(table)
        return "multi_label", labels, [note]
    if has_one:
        return "single_label", _from_single(table), []
    return "multi_label", _from_zeros_and_ones(table), ["Labels are columns of 0 and 1."]


def _from_single(table: Table) -> list[tuple[str, ...]]:
    texts = table.texts("label")
    if "" in texts:
        raise DataError(
            f"{table.path}, row {texts.index('') + 1}: label is empty. Give every image a class, "
            "or name the column labels for images with none or several."
        )
    return [(text,) for text in texts]


def _from_lists(table: Table) -> tuple[list[tuple[str, ...]], str]:
    cells: list[Cell] = [_unbracketed(row.get("labels", "")) for row in table.rows]
    texts = [cell for cell in cells if isinstance(cell, str)]
    separator = next(
        (s for s in LABEL_SEPARATORS if any(s in text.strip() for text in texts)), None
    )
    labels = [
        _clean(cell if isinstance(cell, list) else cell.split(separator) if separator else [cell])
        for cell in cells
    ]
    if separator:
        return labels, f"Labels in one cell are separated by a {LABEL_SEPARATORS[separator]}."
    return labels, "Labels are lists." if len(texts) < len(cells) else "One label per cell."


def _unbracketed(cell: Cell) -> Cell:
    """A list written as text, `["red", "blue"]` or `['red', 'blue']`, as a list."""
    if isinstance(cell, list) or not (cell.strip().startswith("[") and cell.strip().endswith("]")):
        return cell
    try:
        items = ast.literal_eval(cell.strip())
    except (ValueError, SyntaxError):
        return cell
    return [str(item) for item in items]


def _clean(parts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _from_zeros_and_ones(table: Table) -> list[tuple[str, ...]]:
    classes = [column for column in table.columns if column not in OTHER_COLUMNS]
    columns = {name: table.texts(name) for name in classes}
    no_flags = [name for name, texts in columns.items() if not set(texts) <= {"0", "1"}]
    if no_flags or not classes:
        raise DataError(
            f"{table.path} has no column label or labels, and not every other column is 0 or 1 "
            f"(columns: {', '.join(table.columns)}): name the column of the labels."
        )
    return [tuple(c for c in classes if columns[c][i] == "1") for i in range(len(table.rows))]
