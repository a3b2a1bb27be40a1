"""The verdict on a case: what to look at first, what else was found, and what nobody measured."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Protocol, cast

from ringside.doctor import checks
from ringside.doctor.applying import allowed
from ringside.doctor.bounded import bounded
from ringside.doctor.case import Case
from ringside.doctor.conclusions import conclude
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Diagnosis, Finding
from ringside.doctor.merging import merged, without_repeats
from ringside.doctor.missing import missing_of
from ringside.doctor.tested import tested
from ringside.doctor.traced import trace_findings
from ringside.doctor.weighing import weight_of
from ringside.trace.findings import Cause


class Check(Protocol):
    """What every module of `ringside.doctor.checks` has."""

    CODE: str
    CAUSE: Cause
    ORDER: int
    __name__: str
    __doc__: str | None

    def check(self, case: Case) -> Finding | None: ...


@cache
def all_checks() -> tuple[Check, ...]:
    """All checks of the doctor, in their order; those of traces are `ringside.trace.judging`'s."""
    names = [module.name for module in pkgutil.iter_modules(checks.__path__)]
    modules = [importlib.import_module(f"{checks.__name__}.{name}") for name in names]
    return tuple(sorted((cast(Check, m) for m in modules), key=lambda check: check.ORDER))


def diagnose(case: Case) -> Diagnosis:
    """The verdict on everything that is known of a run, a machine, or somebody's files."""
    spec = spec_of(case)
    found = [
        (order, bounded(tested(allowed(finding, spec), case), case))
        for order, finding in _found(case)
    ]
    placed = sorted(merged(found, case), key=lambda pair: (weight_of(pair[1]), pair[0]))
    findings = [finding for _, finding in placed]
    verdict = conclude(case, findings)
    others = (finding for finding in findings if finding is not verdict)
    return Diagnosis(
        verdict=verdict,
        others=tuple(without_repeats(verdict, others)),
        missing=missing_of(case),
    )


def _found(case: Case) -> Iterator[tuple[int, Finding]]:
    yield from trace_findings(case)
    for check in all_checks():
        found = check.check(case)
        if found is not None:
            yield check.ORDER, found
