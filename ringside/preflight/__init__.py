"""What could go wrong with a run, looked at before it starts: all errors and warnings together.

    case = look(request, hardware, runs_root(), report=report)
    found = preflight(case)             # found.items, found.errors, found.warnings
    found.require(accepted)             # SpecError for an error, and for a warning left unaccepted
    kept = record_of(case, accepted)    # before the start
    keep(run, kept)                     # preflight.json of the run

The page and the terminal show the same list. An error blocks; a warning may be overridden, and what
was overridden is kept with the run.
"""

from ringside.preflight.case import Case, look
from ringside.preflight.items import Item, Level, Preflight
from ringside.preflight.keeping import Kept, keep, kept_of, record_of
from ringside.preflight.running import all_checks, preflight

__all__ = [
    "Case",
    "Item",
    "Kept",
    "Level",
    "Preflight",
    "all_checks",
    "keep",
    "kept_of",
    "look",
    "preflight",
    "record_of",
]
