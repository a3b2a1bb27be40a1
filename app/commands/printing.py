"""Text on a terminal: in columns, bounded, and without characters that a terminal would obey."""

from __future__ import annotations

from ringside.words import say, translated

MAX_LINES = 20


def print_some(title: str, lines: list[str]) -> None:
    """A title and the first lines below it; how many more there are; nothing for no lines."""
    if lines:
        print(title)
    for line in lines[:MAX_LINES]:
        print(f"  {printable(line)}")
    if len(lines) > MAX_LINES:
        print("  " + say("terminal.more", n=len(lines) - MAX_LINES))


def source_told(source: str) -> str:
    """A word for where something was measured; a file stays as it is."""
    return translated(f"evidence_source.{source.replace(' ', '_')}", source)


def width_of(text: str) -> int:
    """Columns on a terminal: Chinese signs take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def padded(text: str, width: int) -> str:
    """The text with spaces behind it, up to `width` columns."""
    return text + " " * (width - width_of(text))


def to_the_right(text: str, width: int) -> str:
    """The text with spaces before it, up to `width` columns."""
    return " " * (width - width_of(text)) + text


def printable(text: str) -> str:
    """Names of files and lines of logs may hold control characters; they are shown escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
