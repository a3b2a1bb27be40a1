"""Lengths of time as people write and read them: 90s, 30m, 2h30m, 1d."""

from __future__ import annotations

import re

from ringside.errors import SpecError
from ringside.words import say

UNITS_S = {"d": 86400, "h": 3600, "min": 60, "s": 1}
MAX_S = 365 * UNITS_S["d"]

_WRITTEN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?:in)?)?(?:(\d+)s)?")


def parse_duration(text: str) -> int:
    """Seconds of `90s`, `30m`, `2h30m`, `1d`; SpecError for anything else."""
    words = "".join(text.split()).lower()
    # Longer numbers are beyond a year in any unit, and Python refuses to read very long ones.
    found = _WRITTEN.fullmatch(words) if words and len(words) <= 40 else None
    if found is None:
        raise SpecError(say("request.no_duration", text=text[:40]))
    counts = (int(count or 0) for count in found.groups())
    return sum(count * unit for count, unit in zip(counts, UNITS_S.values(), strict=True))


def check_time_limit(seconds: int | None) -> int | None:
    """The limit, None for none; SpecError where it is no time at all, or beyond a year."""
    if seconds is not None and not 1 <= seconds <= MAX_S:
        given = duration(seconds) if seconds >= 0 else f"{seconds} s"
        raise SpecError(say("request.bad_time_limit", given=given))
    return seconds


def duration(seconds: int) -> str:
    """`2 h 30 min`, `90 s` as `1 min 30 s`; parts that are 0 are left out."""
    parts = []
    for name, unit in UNITS_S.items():
        count, seconds = divmod(seconds, unit)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts) or "0 s"
