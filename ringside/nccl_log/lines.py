"""From a line of a console to the lines of NCCL in it.

A line begins `host:pid:tid [device] NCCL INFO text`. Since 2.26 a time may stand before it, WARN
lines name the source file, 2.30 its function too, and launchers put a rank in front. Several
processes share a console, so a line may break off where the head of another begins (src/debug.cc
of NCCL 2.4 to 2.30).
"""

from __future__ import annotations

import re
from typing import NamedTuple

_HEAD = re.compile(
    r"(?P<host>[^\s:]{1,255}):(?P<pid>\d{1,10}):(?P<tid>\d{1,10}) "
    r"(?:\[(?P<device>-?\d{1,5})\] )?"
    r"(?:(?:[\d.]{1,32} )?(?P<where>\S{1,255}:\d{1,6})(?: \([^)]{0,255}\))? )?"
    r"NCCL (?P<level>INFO|WARN|TRACE|CALL) "
)
# The version line of level VERSION and torch's watchdog carry no head.
_WITHOUT_HEAD = re.compile(
    r"(?P<version>NCCL version \d+\.\d+\.\d+\S*)$"
    r"|(?P<watchdog>Watchdog caught collective operation timeout.*)$"
)
# What stands before a head: `[default0]:`, `[1,0]<stdout>:`, `3: `, `(pid=7) `, `[time] `, `> `.
_PREFIX = re.compile(r"(?:(?:\[[^\]]{1,40}\](?:<\w+>)?:?|\([^)]{1,40}\)|[\w.-]{1,64} ?[:|]|>)\s*)*")
_COLOURS = re.compile(r"\x1b\[[\d;]*m")


class Line(NamedTuple):
    """One line of NCCL. `clean` is False where its host may have the rest of another line on it."""

    text: str
    host: str = ""
    pid: int = 0
    device: int | None = None
    level: str = "INFO"
    where: str | None = None
    clean: bool = True


def split(line: str) -> tuple[list[Line], int]:
    """The whole lines of NCCL in one line of a console, and the number of torn ones.

    Whole is what runs up to the line's end. What stops at the head of another line, or at the end
    of the file without a line break, was cut anywhere and could say something else.
    """
    if "NCCL" not in line:
        return [], 0
    ended = line.endswith("\n")
    line = line.rstrip("\r\n")
    if "\x1b" in line:
        line = _COLOURS.sub("", line)
    first = _HEAD.match(line)
    # The search for more heads costs more than all the rest; nearly no line has any.
    is_alone = first is not None and line.find("NCCL ", first.end()) < 0
    heads = [first] if first and is_alone else list(_HEAD.finditer(line))
    if not heads:
        return _without_head(line) if ended else [], 0
    if not ended:
        return [], len(heads)
    last = heads[-1]
    return [_line(last, line)], len(heads) - 1


def _line(head: re.Match[str], line: str) -> Line:
    device = head["device"]
    return Line(
        text=line[head.end() :].strip(),
        host=head["host"],
        pid=int(head["pid"]),
        device=None if device is None else int(device),
        level=head["level"],
        where=head["where"],
        clean=not head.start() or _PREFIX.fullmatch(line[: head.start()]) is not None,
    )


def _without_head(line: str) -> list[Line]:
    found = _WITHOUT_HEAD.search(line)
    if found is None:
        return []
    level = "INFO" if found["version"] else "WARN"
    return [Line(text=found[0], level=level)]
