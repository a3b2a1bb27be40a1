"""What the form's run would meet, before it starts: the preflight of the page."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from app.views.check import without_bad_files
from app.views.fields import LEAVE_OUT, Reports, Values, request_of
from ringside.errors import RingsideError, SpecError
from ringside.hardware import Hardware
from ringside.machine import GpuState
from ringside.preflight import Case, Item, Kept, Preflight, look, preflight, record_of
from ringside.request import RunRequest, resolve
from ringside.spec import RunSpec
from ringside.words import say


@dataclass(frozen=True)
class Before:
    """The list, and what of it a person has accepted; `case` is None for a form of no sense."""

    found: Preflight
    accepted: frozenset[str]
    case: Case | None = None

    def require(self) -> None:
        """SpecError for an error, and for warnings that nobody has accepted."""
        self.found.require(self.accepted)

    def record(self) -> Kept:
        """What is to be kept with the run: what was known, and what was accepted."""
        return record_of(self.case, self.accepted) if self.case is not None else Kept()


def look_before(
    values: Values, hardware: Hardware, root: Path, reports: Reports,
    gpus: tuple[GpuState, ...] = (),
) -> Before:  # fmt: skip
    """The preflight of a filled form; it never raises."""
    accepted = accepted_of(values)
    try:
        request = request_of(values)
    except RingsideError as error:
        item = Item(code="request", level="error", sentence=str(error))
        preset = str(values.get("preset") or "")
        return Before(Preflight(preset=preset, items=(item,)), accepted)
    spec, fault = _resolved(request, values, hardware, reports)
    case = look(request, hardware, root, spec=spec, reports=reports, gpus=gpus)
    if fault is not None:
        case = replace(case, faults=(*case.faults, fault))
    # Who chose to start beside other runs has been told by the choice itself.
    chosen = accepted | {"beside"} if request.beside else accepted
    return Before(preflight(case), chosen, case)


def _resolved(
    request: RunRequest, values: Values, hardware: Hardware, reports: Reports
) -> tuple[RunSpec | None, Item | None]:
    """The spec, and why no files can be left out of it; all other faults are the preflight's."""
    try:
        spec = resolve(request, hardware)
    except RingsideError:
        return None, None
    try:
        return with_files_left_out(spec, values, reports), None
    except RingsideError as error:
        fault = Item(code="request", level="error", sentence=str(error), field="bad_files")
        return spec, fault


def with_files_left_out(spec: RunSpec, values: Values, reports: Reports) -> RunSpec:
    """Without the bad files where the form says so, by the last check; SpecError without one."""
    if values.get("bad_files") != LEAVE_OUT:
        return spec
    report = reports(spec.data)
    if report is None:
        raise SpecError(say("train.check_first"))
    return without_bad_files(spec, report)


def accepted_of(values: Values) -> frozenset[str]:
    """The codes of the warnings that were ticked; anything unreadable is none."""
    try:
        codes = json.loads(values.get("accepted") or "[]")
    except (TypeError, ValueError, RecursionError):
        return frozenset()
    if not isinstance(codes, list):
        return frozenset()
    return frozenset(code for code in codes if isinstance(code, str))
