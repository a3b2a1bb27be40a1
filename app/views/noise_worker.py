"""Works out the intervals of two runs' differences: `python -m app.views.noise_worker`.

Reads one `Pair` as a line of JSON, writes one `Worked`, and ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from app.views.child import end_with_the_page, give_way, tell_the_page
from ringside.compare import kept_differences
from ringside.run import fold_run
from ringside.rundir import RunDir
from ringside.scores import Differences


class Pair(msgspec.Struct, frozen=True):
    """Run directories: the reference, and the run that is compared with it."""

    first: str
    second: str


class Worked(msgspec.Struct, frozen=True):
    """What came of it; None where the two are not of the same images."""

    differences: Differences | None


def main() -> int:
    """0, or 130 when it was stopped."""
    pair = msgspec.json.decode(sys.stdin.buffer.readline(), type=Pair)
    give_way()
    end_with_the_page()
    try:
        first, second = (fold_run(RunDir(Path(path))) for path in (pair.first, pair.second))
        answer = Worked(kept_differences(first, second))
    except KeyboardInterrupt:
        return 130
    tell_the_page(answer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
