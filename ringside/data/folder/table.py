"""Reads CSV, TSV, JSON lines and parquet into columns whose cells are text, or lists of text.

Nothing is guessed into a number or a blank: "007", "NA", "null", "1e5" and "True" are names.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from ringside.data.folder.columns import IMAGE_COLUMNS, find_image_column, known_column
from ringside.data.folder.parquet import read_parquet
from ringside.errors import DataError
from ringside.words import say

Cell = str | list[str]
Columns = dict[str, list[object]]

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")


@dataclass(frozen=True)
class Table:
    """The rows of a table; every row has a text in `image_column`. Row numbers start at 1.

    `delimiter` is the character between two columns of text files. `lines` are the numbers of the
    lines in which the rows begin, the header counted; empty for a file that has no lines.
    """

    path: Path
    columns: Columns
    image_column: str
    delimiter: str | None = None
    lines: Sequence[int] = ()

    def where(self, row: int, name: str | None = None) -> str:
        """The place of a row, as an editor shows it; `name` stands for the path."""
        place = (
            say("dataset.line", n=self.lines[row - 1])
            if self.lines
            else say("dataset.row", row=row)
        )
        return say("dataset.place", place=place, file=name or self.path)

    def _place(self, row: int, column: str) -> str:
        return say("dataset.cell", where=self.where(row), column=column)

    @property
    def num_rows(self) -> int:
        """How many rows the table has, the header left out."""
        return len(self.columns[self.image_column])

    def cells(self, column: str) -> list[Cell]:
        """A column of texts or lists of texts; a missing cell is an empty text."""
        values = enumerate(self.columns[column], 1)
        return [_cell(value, partial(self._place, row, column)) for row, value in values]

    def texts(self, column: str) -> list[str]:
        """A column that holds one text per row; a missing cell is an empty text."""
        texts = []
        for row, cell in enumerate(self.cells(column), 1):
            if isinstance(cell, list):
                raise DataError(say("dataset.list_in_cell", where=self.where(row), column=column))
            texts.append(cell.strip())
        return texts

    def known(self, *names: str) -> list[str]:
        """The columns with one of these names, whatever their case."""
        return [column for column in self.columns if known_column(column) in names]


def read_table(path: Path) -> Table:
    """Read a table. Raises `DataError` naming the file and the row or column."""
    columns, lines, delimiter = _columns(path)
    if not any(columns.values()):
        raise DataError(say("dataset.no_rows", path=path))
    table = Table(path, columns, find_image_column(path, columns), delimiter, lines)
    texts = table.texts(table.image_column)
    if "" in texts:
        raise DataError(
            say(
                "dataset.name_missing",
                where=table.where(texts.index("") + 1),
                column=table.image_column,
                columns=", ".join(columns),
            )
        )
    return table


def _columns(path: Path) -> tuple[Columns, list[int], str | None]:
    """The cells, the lines of the rows, and the delimiter."""
    if path.suffix.lower() == ".parquet":
        return read_parquet(path), [], None
    text = _text(path)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return *_json_columns(path, text), None
    delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(text)
    return *_csv_columns(path, text, delimiter), delimiter


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        # Excel's "Unicode text" is UTF-16 with a byte order mark.
        is_utf_16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        return content.decode("utf-16" if is_utf_16 else "utf-8-sig")
    except OSError as error:
        raise DataError(say("dataset.unreadable", path=path, why=error.strerror)) from error
    except UnicodeDecodeError as error:
        raise DataError(say("dataset.no_utf_8", path=path)) from error


def _delimiter(text: str) -> str:
    """The one that sets the image column free, else the one that gives the most columns."""
    header = text.partition("\n")[0].strip()
    headers = {
        d: [c.strip() for c in next(csv.reader([header], delimiter=d), [])] for d in DELIMITERS
    }
    for delimiter, columns in headers.items():
        if any(known_column(column) in IMAGE_COLUMNS for column in columns):
            return delimiter
    return max(headers, key=lambda delimiter: len(headers[delimiter]))


def _csv_rows(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Every row with the line in which it begins; a cell in quotes may have several lines."""
    # strict: an unclosed quote would swallow the rows after it without a word.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(say("dataset.no_csv", path=path, line=line, error=error)) from error


def _csv_columns(path: Path, text: str, delimiter: str) -> tuple[Columns, list[int]]:
    rows = list(_csv_rows(path, text, delimiter))
    header = [name.strip() for name in rows[0][1]] if rows else []
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(say("dataset.column_twice", path=path, column=twice[0]))
    filled = [(line, row) for line, row in rows[1:] if row]  # blank lines give no cells at all
    for line, row in filled:
        if len(row) > len(header):
            raise DataError(say("dataset.too_many_cells", line=line, path=path))
    columns: Columns = {
        name: [row[i] if i < len(row) else "" for _, row in filled] for i, name in enumerate(header)
    }
    return columns or {"": []}, [line for line, _ in filled]


def _json_columns(path: Path, text: str) -> tuple[Columns, list[int]]:
    rows: list[dict[str, object]] = []
    lines: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append(msgspec.json.decode(line, type=dict[str, object]))
            except msgspec.DecodeError as error:
                raise DataError(
                    say("dataset.no_json", line=number, path=path, error=error)
                ) from error
            lines.append(number)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names} or {"": []}, lines


def _cell(value: object, where: Callable[[], str]) -> Cell:
    """Labels and names are text, always: 7 becomes "7" and "007" stays "007"."""
    if value is None:
        return ""
    if isinstance(value, list):
        return [text for item in value if isinstance(text := _cell(item, where), str)]
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise DataError(say("dataset.no_text", where=where(), value=value))
