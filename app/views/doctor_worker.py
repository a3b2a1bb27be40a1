"""Looks at one run, or at the machine: `python -m app.views.doctor_worker`.

Reads one `Visit` as a line of JSON, writes one line, a `DoctorView` or a sentence, and ends. Traces
are large and charts need a renderer, so the page's server holds neither.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from app.views import figures
from app.views.charts.drawing import picture
from app.views.charts.selection import figures_of, gaps_of
from app.views.child import end_with_the_page, give_way, tell_the_page
from app.views.doctor import DoctorView, cards_of, machine_view, points_of
from app.views.doctor_messages import Answer, Refused, Seen, Visit
from ringside.doctor import case_of_run, diagnose
from ringside.doctor.machine_check import case_of_machine
from ringside.doctor.walkthrough import walk
from ringside.errors import RingsideError
from ringside.rundir import RunDir
from ringside.words import speak


def main() -> int:
    """0 when there is a view or a sentence, 130 when it was stopped."""
    visit = msgspec.json.decode(sys.stdin.buffer.readline(), type=Visit)
    speak(visit.language)
    give_way()
    end_with_the_page()
    try:
        answer: Answer = Seen(look(Path(visit.root), visit.run_id))
    except RingsideError as error:
        answer = Refused(str(error))
    except KeyboardInterrupt:
        return 130
    tell_the_page(answer)
    return 0


def look(root: Path, run_id: str | None) -> DoctorView:
    """The whole visit; raises a RingsideError for a run that cannot be read."""
    case = case_of_run(RunDir(root / run_id), root) if run_id else case_of_machine(root)
    diagnosis = diagnose(case)
    spec = case.record.spec if case.record is not None else None
    verdict, *others = cards_of(diagnosis, run_id, spec)
    drawn = figures_of(case, root)
    return DoctorView(
        verdict=verdict,
        others=tuple(others),
        missing=diagnosis.missing,
        points=points_of(walk(case), run_id) if case.record is not None else (),
        pictures=tuple(picture(figure) for figure in drawn),
        gaps=gaps_of(case, drawn),
        machine=machine_view(case.machine) if case.machine else None,
        traces=tuple(_size(Path(path)) for path in case.traces),
    )


def _size(path: Path) -> tuple[str, str]:
    try:
        return path.name, figures.size(path.stat().st_size)
    except OSError:
        return path.name, figures.DASH


if __name__ == "__main__":
    sys.exit(main())
