"""Checks a data set in a process of its own: `python -m app.views.check_worker`.

Its argument is the language of whoever asks. It reads one DataSpec as a line of JSON, writes lines
of `CheckMessage`, and ends when its standard input does. It works at low priority: a run on the
same machine comes first.
"""

from __future__ import annotations

import sys
import time

import msgspec

from app.views.check_messages import CheckMessage, Found, OddPicture, Progress, Refused
from app.views.child import end_with_the_page, give_way, tell_the_page
from ringside.data import check_data, odd_images
from ringside.errors import RingsideError
from ringside.spec import DataSpec
from ringside.words import speak

PROGRESS_PAUSE_S = 0.2


def main() -> int:
    """0 when there is a report or a sentence, 130 when it was stopped."""
    speak(sys.argv[1])
    spec = msgspec.json.decode(sys.stdin.buffer.readline(), type=DataSpec)
    give_way()
    end_with_the_page()
    try:
        tell_the_page(_checked(spec))
    except KeyboardInterrupt:
        return 130
    return 0


def _checked(spec: DataSpec) -> CheckMessage:
    said = 0.0

    def progress(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if done == total or now - said > PROGRESS_PAUSE_S:
            said = now
            tell_the_page(Progress(done, total))

    try:
        report = check_data(spec, progress=progress)
    except RingsideError as error:
        return Refused(str(error))
    odd = (OddPicture(image.kind, image.file, image.png) for image in odd_images(report))
    return Found(report, tuple(odd))


if __name__ == "__main__":
    sys.exit(main())
