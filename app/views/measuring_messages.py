"""What the page asks a measuring process, and what that says while it works: lines of JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from ringside.spec import RunSpec

What = Literal["machine", "experiment", "presets"]


class Order(msgspec.Struct, frozen=True):
    """What to measure: this machine, the controlled experiment of a run below `root`, or a few
    steps of each of `specs`.
    """

    what: What
    root: str
    run_id: str | None = None
    specs: tuple[RunSpec, ...] = ()
    language: str = "en"


class Said(msgspec.Struct, frozen=True, tag="said"):
    """One line of progress."""

    line: str


class Done(msgspec.Struct, frozen=True, tag="done"):
    """It is measured and stored; a sentence about it."""

    sentence: str


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Nothing was stored; the sentence says why."""

    sentence: str


Message = Said | Done | Failed
