"""Text on a terminal: in columns, bounded, and without characters that a terminal would obey."""

from __future__ import annotations

MAX_LINES = 20


def print_some(title: str, lines: list[str]) -> None:
    """A title and the first lines below it; how many more there are; nothing for no lines."""
    if lines:
        print(title)
    for line in lines[:MAX_LINES]:
        print(f"  {printable(line)}")
    if len(lines) > MAX_LINES:
        print(f"  and {len(lines) - MAX_LINES:,} more; --json has them all")


def width_of(text: str) -> int:
    """Columns on a terminal: Chinese signs take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """The text with spaces behind it, up to `width` columns."""
    return text + " " * (width - width_of(text))


def printable(text: str) -> str:
    """Names of files and lines of logs may hold control characters; they are shown escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
