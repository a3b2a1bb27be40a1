"""One line of a preflight, and all of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import msgspec

from ringside.errors import SpecError
from ringside.words import say

Level = Literal["error", "warning", "unknown", "fine"]
LEVELS: tuple[Level, ...] = ("error", "warning", "unknown", "fine")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What one check says. `code` stays the same over versions, `sentence` is for people.

    error: the run cannot start; warning: it may be started anyway; unknown: nobody measured;
    fine: looked at, and nothing is wrong. `field` names the part of the request that is at fault.
    """

    code: str
    level: Level
    sentence: str
    field: str | None = None


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """All items, what blocks first."""

    format: int = 1
    preset: str
    items: tuple[Item, ...]

    @property
    def errors(self) -> tuple[Item, ...]:
        """What blocks."""
        return self.of("error")

    @property
    def warnings(self) -> tuple[Item, ...]:
        """What may be overridden, one by one."""
        return self.of("warning")

    def of(self, level: Level) -> tuple[Item, ...]:
        """The items of one level."""
        return tuple(item for item in self.items if item.level == level)

    def open_warnings(self, accepted: Collection[str]) -> tuple[Item, ...]:
        """The warnings whose codes nobody has accepted."""
        return tuple(item for item in self.warnings if item.code not in accepted)

    def require(self, accepted: Collection[str]) -> None:
        """SpecError for the first error, or for the warnings that nobody has accepted."""
        if self.errors:
            raise SpecError(self.errors[0].sentence)
        if left := self.open_warnings(accepted):
            raise SpecError(say("preflight.open", sentences=" ".join(one.sentence for one in left)))


class Remark(msgspec.Struct, frozen=True):
    """What a check returns; the code is the module's."""

    level: Level
    sentence: str


def remark(level: Level, key: str, **values: Any) -> Remark:
    """A level and the sentence `preflight.KEY` of the words."""
    return Remark(level, say(f"preflight.{key}", **values))
