"""The exceptions that Ringside raises on purpose.

    RingsideError          anything a person can cause and mend (exit code 2)
    ├── SpecError          a request that cannot be run as it stands
    ├── PresetError        a preset file that cannot be read or used
    ├── RunDirError        a run directory that is missing, foreign or not writable
    ├── LaunchError        a run that could not be started or stopped
    ├── DataError          images or labels that cannot be used
    ├── TraceError         traces of a profiler that cannot be read
    ├── PlaybookError      a playbook that cannot be made, read or kept
    └── SetupError         the trainer did not get the set-up it was asked for

Every message is one sentence or two: what is wrong, which value, what to do.
Programmer errors stay plain Python exceptions and end with exit code 3.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ringside.words import say


class RingsideError(Exception):
    """Something a person can cause and mend; its text is shown as it is, without a traceback."""


class SpecError(RingsideError):
    """A request (flags or form) that cannot be run as it stands."""


class UnevenBatchError(SpecError):
    """A batch that cannot be split evenly; names the nearest ones that can."""


class OtherTaskError(SpecError):
    """A setting that belongs to another task than that of the data."""


class PresetError(RingsideError):
    """A preset file that cannot be read, is not valid, or cannot be used here."""


class RunDirError(RingsideError):
    """A run directory that is missing, foreign, from a newer version, or not writable."""


class LaunchError(RingsideError):
    """A run that could not be started or stopped."""


class DataError(RingsideError):
    """Images or labels that cannot be used; names the file or the value."""


class NoImagesError(DataError):
    """A folder without a single image: nothing that is left out of it mends that."""


class TooFewClassesError(DataError):
    """Images that are all labelled alike: nothing that is left out of them mends that."""


class TraceError(RingsideError):
    """Trace files that cannot be read, or do not belong together; names the file."""


class PlaybookError(RingsideError):
    """A playbook that cannot be made, read or kept; names the file or the playbook."""


class SetupError(RingsideError):
    """The trainer did not get the set-up that was requested; names the field and both values."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt `name`: the closest known one, else the whole list, as a sentence."""
    names = sorted(known)
    close = closest(name, names)
    return say("hint.nearest", name=close) if close else say("hint.known", names=", ".join(names))


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a misspelt one is most like; None where none is near."""
    return next(iter(difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)), None)
