"""The variables of a case, for the checks that speak of them."""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding, Severity
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.environment_lint import Finding as Variable
from ringside.environment_lint import Level
from ringside.trace.findings import Cause, Confidence


def variables_of(case: Case) -> tuple[Variable, ...]:
    """Those that somebody set for the run; without a run those of this machine now."""
    if case.variables or case.record is not None or case.machine is None:
        return tuple(one for one in case.variables if one.name not in _unchosen(case))
    return case.machine.variables


def forced_ways(case: Case) -> tuple[str, ...]:
    """NCCL's variables that are set and shut a way or force one."""
    return tuple(
        one.name
        for one in variables_of(case)
        if one.level == "handicap" and one.name.startswith("NCCL_")
    )


def _unchosen(case: Case) -> frozenset[str]:
    """What a launcher sets by itself, and what had to be set for the log that is being read."""
    names = set[str]()
    spec = case.record.spec if case.record is not None else None
    if spec is not None and (spec.device == "cpu" or spec.num_processes > 1):
        names.add("OMP_NUM_THREADS")  # Ringside on a CPU, torchrun for several processes
    if case.nccl is not None:
        names |= {"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"}
    return frozenset(names)


def found_at(
    case: Case,
    level: Level,
    code: str,
    cause: Cause,
    confidence: Confidence,
    *,
    severity: Severity | None = None,
    can_unset: bool = False,
) -> Finding | None:
    """All variables of one level in one finding; of unknown ones those that look like a slip.

    `can_unset`: what helps is to run without them.
    """
    found = [
        one
        for one in variables_of(case)
        if one.level == level and (level != "unknown" or one.nearest)
    ]
    if not found:
        return None
    return finding_of(
        code,
        cause,
        confidence,
        severity=severity,
        remedy=Remedy(unset=tuple(one.name for one in found) if can_unset else ()),
        evidence=tuple(
            seen(f"{one.name}={one.value}", one.why or one.about, "environment") for one in found
        ),
        values={
            "names": ", ".join(one.name for one in found),
            "nearest": ", ".join(one.nearest for one in found if one.nearest),
        },
    )
