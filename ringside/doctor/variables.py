"""The variables of a case, for the checks that speak of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from ringside.doctor.applying import file_of
from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of, transport_of
from ringside.doctor.findings import Evidence, Finding, Severity
from ringside.doctor.phrasing import Remedy, finding_of, seen
from ringside.environment_lint import Finding as Variable
from ringside.environment_lint import Level, in_words
from ringside.nccl_log import NcclLog
from ringside.nccl_log.causes import (
    listed,
    names_of,
    why_not_direct,
    why_not_shared_memory,
    why_sockets,
)
from ringside.trace.findings import Cause, Confidence
from ringside.words import say

ENVIRONMENT = "environment"


def variables_of(case: Case) -> tuple[Variable, ...]:
    """Those that somebody set for the run; without a run those of this machine now."""
    if case.variables or case.record is not None or case.machine is None:
        return tuple(one for one in case.variables if one.name not in _unchosen(case))
    return case.machine.variables


def forced_ways(case: Case) -> tuple[str, ...]:
    """Names of the variables that shut a faster way than the one that the bytes take.

    A forced algorithm shuts none, and over peer access (P2P) none is shut.
    """
    transport = transport_of(case) or ""
    if transport.startswith("P2P"):
        return ()
    log = case.nccl or NcclLog()
    is_set = {one.name: one.value for one in variables_of(case)}
    log = msgspec.structs.replace(log, environment=is_set | log.environment)
    cause = why_not_direct(log)
    if not transport.startswith("SHM"):
        cause += why_not_shared_memory(log)
    if len(log.hosts) > 1:
        cause += why_sockets(log)
    return tuple(dict.fromkeys(names_of(cause.variables)))


def set_shown(variables: Iterable[str]) -> tuple[Evidence, ...]:
    """A line of evidence for each `NAME=value`."""
    return tuple(seen(say("doctor.is_set"), one, ENVIRONMENT) for one in variables)


def told_in(finding: Finding) -> frozenset[str]:
    """The names of the variables in a finding's evidence."""
    return frozenset(
        one.value.partition("=")[0]
        for one in finding.evidence
        if (one.label, one.source) == (say("doctor.is_set"), ENVIRONMENT)
    )


def taking_away(names: Sequence[str], case: Case) -> tuple[Remedy, str]:
    """To run without them, and how that is said: `env -u` undoes no variable of a preset."""
    spec = spec_of(case)
    own = [name for name in names if spec is not None and name in spec.environment]
    file = file_of(spec.preset) if spec is not None and own else None
    given = [name for name in own if file is not None and name in file.environment]
    free = tuple(name for name in names if name not in given)
    key = "unset" if not given else "unset_and_take_out" if free else "take_out"
    preset = spec.preset if spec is not None else ""
    told = say(
        f"doctor.{key}", names=listed(free) if free else "", given=listed(given) if given else "",
        preset=preset,
    )  # fmt: skip
    return Remedy(unset=free), told


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
    told: Collection[str] = (),
) -> Finding | None:
    """All variables of one level in one finding; of unknown ones those that look like a slip.

    `can_unset`: what helps is to run without them. `told`: names that another finding speaks of.
    """
    found = [
        one
        for one in variables_of(case)
        if one.level == level and (level != "unknown" or one.nearest) and one.name not in told
    ]
    if not found:
        return None
    remedy, how = taking_away([one.name for one in found], case)
    return finding_of(
        code,
        cause,
        confidence,
        severity=severity,
        remedy=remedy if can_unset else Remedy(),
        evidence=tuple(
            seen(f"{one.name}={one.value}", one.why or one.about, ENVIRONMENT)
            for one in map(in_words, found)
        ),
        values={
            "how": how,
            "names": ", ".join(one.name for one in found),
            "nearest": ", ".join(one.nearest for one in found if one.nearest),
        },
    )
