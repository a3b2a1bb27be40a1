"""The verdict: the first of the findings."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Protocol, cast

from ringside.trace import checks
from ringside.trace.facts import Facts
from ringside.trace.files import shown
from ringside.trace.findings import Cause, Finding, Verdict
from ringside.trace.thresholds import MIN_EVENTS
from ringside.words import say

UNEXPLAINED, NOT_ENOUGH = "UNEXPLAINED-001", "UNEXPLAINED-002"


class Check(Protocol):
    """What every module of `ringside.trace.checks` has."""

    CODE: str
    CAUSE: Cause
    ORDER: int

    def check(self, facts: Facts) -> Finding | None: ...


@cache
def all_checks() -> tuple[Check, ...]:
    """All checks, in their order."""
    names = [module.name for module in pkgutil.iter_modules(checks.__path__)]
    modules = [importlib.import_module(f"{checks.__name__}.{name}") for name in names]
    return tuple(sorted((cast(Check, m) for m in modules), key=lambda check: check.ORDER))


def judge(facts: Facts) -> Verdict:
    """The cause to look at first. `unexplained` when no check knows one, and says why."""
    if (why := lacking(facts)) is not None:
        return Verdict(first=why)
    findings = [found for check in all_checks() if (found := check.check(facts)) is not None]
    findings.sort(key=lambda finding: finding.is_minor)  # stable: the order of the checks stays
    if not findings:
        return Verdict(first=unexplained(facts))
    return Verdict(first=findings[0], others=tuple(findings[1:]))


def lacking(facts: Facts) -> Finding | None:
    """Why nothing can be said, where that is so."""
    pace = facts.pace
    if pace.totals.num_events < MIN_EVENTS.value or pace.breakdown.wall_us <= 0:
        reason = say("trace.too_little", num=pace.totals.num_events, rank=pace.rank)
    elif pace.is_cpu_estimate and not pace.num_collectives:
        reason = say("trace.no_gpu_work", file=shown(pace.file))
    else:
        return None
    return Finding(
        code=NOT_ENOUGH, cause="unexplained", share_ratio=None, sentence=reason,
        confidence="not enough data",
        refutation=say("trace.record_more"),
    )  # fmt: skip


def unexplained(facts: Facts) -> Finding:
    """What to say when no check knows a cause."""
    part = facts.pace.breakdown
    return Finding(
        code=UNEXPLAINED,
        cause="unexplained",
        share_ratio=1 - part.ratio("compute"),
        sentence=say(
            "trace.unexplained", rank=facts.pace.rank, compute=part.ratio("compute"),
            transfer=part.ratio("exposed_transfer"), host=part.ratio("host_wait"),
        ),
        confidence="low",
        refutation=say("trace.unexplained_refutation"),
    )  # fmt: skip
