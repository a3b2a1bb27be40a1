"""In what the form differs from its preset left alone, and from the last run on the same data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.views.contrast import ContrastLine, contrast_lines
from ringside.compare.configuration import configuration
from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.request import RunRequest, resolve
from ringside.run import RunRecord
from ringside.rundir import list_run_dirs
from ringside.spec import DataSpec, RunSpec
from ringside.words import say

RECENT_RUNS = 100


@dataclass(frozen=True)
class DifferenceView:
    """`columns` name what is compared, the form among them; `agreed` are the lines without news.

    `last` names the newest run on the same data, None where there is none.
    """

    columns: tuple[str, ...]
    differing: tuple[ContrastLine, ...]
    agreed: tuple[ContrastLine, ...]
    last: str | None = None


def difference_view(
    spec: RunSpec, request: RunRequest, hardware: Hardware, root: Path
) -> DifferenceView:
    """What was resolved from the form beside what it stands for when nothing is changed."""
    plain = _plain(request, hardware)
    last = last_run(root, spec.data)
    columns = [say("difference.form")]
    specs = [spec]
    if plain is not None:
        columns.insert(0, say("difference.preset", preset=spec.preset))
        specs.insert(0, plain)
    if last is not None:
        columns.append(last[0])
        specs.append(last[1])
    records = [_record(one, root) for one in specs]
    differing = configuration(records)
    known = {(one.group, one.name) for one in differing}
    agreed = [
        one for one in configuration(records, everything=True)
        if (one.group, one.name) not in known
    ]  # fmt: skip
    return DifferenceView(
        tuple(columns),
        contrast_lines(differing),
        contrast_lines(tuple(agreed)),
        last[0] if last else None,
    )


def last_run(root: Path, data: DataSpec) -> tuple[str, RunSpec] | None:
    """Name and request of the newest run on the same data, whatever the image size."""
    for run in list_run_dirs(root)[:RECENT_RUNS]:
        found = run.read(run.spec, RunSpec)
        if found is not None and found.data.label == data.label:
            return run.name, found
    return None


def _plain(request: RunRequest, hardware: Hardware) -> RunSpec | None:
    """The preset on the same data with everything left open; None where that cannot run."""
    plain = RunRequest(preset=request.preset, data=request.data, separator=request.separator)
    for attempt in (plain, msgspec.structs.replace(plain, batch=request.batch)):
        try:
            return resolve(attempt, hardware)
        except RingsideError:
            continue
    return None


def _record(spec: RunSpec, root: Path) -> RunRecord:
    """A record that knows its request alone; its folder does not exist."""
    return RunRecord(id="", name="", path=str(root / say("train.new_run")), spec=spec)
