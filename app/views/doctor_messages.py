"""What the page asks the doctor's process, and what that answers: lines of JSON."""

from __future__ import annotations

import msgspec

from app.views.doctor import DoctorView


class Visit(msgspec.Struct, frozen=True):
    """Whom to look at: a run below `root`, or with None the machine."""

    root: str
    run_id: str | None = None
    language: str = "en"


class Seen(msgspec.Struct, frozen=True, tag="seen"):
    """What there is to show."""

    view: DoctorView


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Why nothing can be shown."""

    sentence: str


Answer = Seen | Refused
