"""Reads metadata.csv and metadata.jsonl into rows whose cells are text, or lists of text."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ringside.errors import DataError

Cell = str | list[str]

COLUMN_DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True)
class Table:
    """The rows of a metadata file; every row has a text in `file_name`. Row numbers start at 1."""

    path: Path
    columns: list[str]
    rows: list[dict[str, Cell]]

    def texts(self, column: str) -> list[str]:
        """A column that holds one text per row; a missing cell is an empty text."""
        return [self._text(number, column) for number in range(1, len(self.rows) + 1)]

    def _text(self, number: int, column: str) -> str:
        cell = self.rows[number - 1].get(column, "")
        if isinstance(cell, list):
            raise DataError(f"{self.path}, row {number}: {column} is a list, expected one text.")
        return cell.strip()


def read_table(path: Path) -> Table:
    """Read a metadata file. Raises `DataError` naming the file and the row or column."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: save it as UTF-8.") from error
    rows = _csv_rows(path, text) if path.suffix == ".csv" else _json_rows(path, text)
    if not rows:
        raise DataError(f"{path} has no rows: write one row per image.")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = Table(path, columns, rows)
    blank = next((n for n, name in enumerate(table.texts("file_name"), 1) if not name), None)
    if blank:
        raise DataError(f"{path}, row {blank}: file_name is missing. Columns: {columns}.")
    return table


def _csv_rows(path: Path, text: str) -> list[dict[str, Cell]]:
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=_delimiter(path, text))
        reader.fieldnames = [name.strip() for name in reader.fieldnames or []]
        rows = list(reader)
    except csv.Error as error:
        raise DataError(f"{path} is not a readable CSV file: {error}.") from error
    for number, row in enumerate(rows, 1):
        if None in row:
            raise DataError(
                f"{path}, row {number}: more cells than columns. Put cells that contain the "
                "delimiter between double quotes."
            )
    return [{column: cell or "" for column, cell in row.items()} for row in rows]


def _delimiter(path: Path, text: str) -> str:
    header = text.partition("\n")[0].strip()
    for delimiter in COLUMN_DELIMITERS:
        columns = next(csv.reader([header], delimiter=delimiter), [])
        if "file_name" in [column.strip() for column in columns]:
            return delimiter
    raise DataError(f"{path} has no column file_name; its first line is {header[:80]!r}.")


def _json_rows(path: Path, text: str) -> list[dict[str, Cell]]:
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = msgspec.json.decode(line, type=dict[str, object])
            except msgspec.DecodeError as error:
                raise DataError(f"{path}, line {number} is not a JSON object: {error}.") from error
            where = f"{path}, line {number}"
            rows.append(
                {column: _cell(value, f"{where}, {column}") for column, value in row.items()}
            )
    return rows


def _cell(value: object, where: str) -> Cell:
    """Labels and names are text, always: 7 becomes "7" and "007" stays "007"."""
    if value is None:
        return ""
    if isinstance(value, list):
        return [text for item in value if isinstance(text := _cell(item, where), str)]
    if isinstance(value, str | int):
        return str(int(value)) if isinstance(value, bool) else str(value)
    raise DataError(f"{where}: {value!r} is neither text nor a list of texts.")
