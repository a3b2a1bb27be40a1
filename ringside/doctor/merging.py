"""One cause has one card: what tells of a shut way takes over what only tells its cost, and one
measurement of a cost takes over the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

import msgspec

from ringside.doctor.case import Case
from ringside.doctor.checks import environment_handicap
from ringside.doctor.experiments import EXPERIMENT
from ringside.doctor.findings import Finding
from ringside.doctor.variables import told_in
from ringside.trace.findings import Confidence

# Whoever of these names variables says why the bytes go a slower way; the first says most.
SAYS_WHY = ("LINK-014", "LINK-015", "LINK-011")
SAYS_HOW_MUCH = ("LINK-002", "LINK-001")
SAYS_WHICH_KERNELS = "LINK-003"
# What only counts on a way that is shut by hand: to be asked again when the way is open.
SAYS_TOO_MUCH = frozenset({"LINK-003", "LINK-016", "LINK-017", "LINK-020"})
# Checks that measure one cost in different ways. For the first the thing was taken away and the
# step timed, which settles it. A run's own clocks, beside which no profiler ran, and few steps of a
# trace may differ; then the larger share is told, lest what waits for it looks like the cause.
SAME_COST = (("DATA-002", "DATA-010", "DATA-001"), SAYS_HOW_MUCH)
_SURENESS: tuple[Confidence, ...] = ("not enough data", "low", "medium", "high")


def merged(placed: Iterable[tuple[int, Finding]], case: Case) -> list[tuple[int, Finding]]:
    """Findings with their place in the order, without those that another one tells.

    Of those that measure one cost one stays, with what the others saw.
    Where none names variables, kernels that keep the exchange from hiding take that evidence.
    The first that names variables takes the evidence of what the exchange costs; a later one that
    only repeats the names falls away, what would send fewer bytes too, and the names leave the list
    of all variables that cost speed.
    """
    left = list(placed)
    for codes in SAME_COST:
        left = _told_once(left, codes)
    by_code = {finding.code: finding for _, finding in left}
    saying = [by_code[code] for code in SAYS_WHY if code in by_code and told_in(by_code[code])]
    if not saying:
        return _with_kernels(left, by_code)
    why, told = saying[0], frozenset[str]().union(*map(told_in, saying))
    gone = SAYS_TOO_MUCH | {one.code for one in saying[1:] if told_in(one) <= told_in(why)}
    changed = {environment_handicap.CODE: environment_handicap.check(case, told)}
    if (cost := _cost_of(by_code)) is not None:
        gone |= {cost.code}
        changed[why.code] = _with_cost(why, cost)
    return [
        (order, now)
        for order, finding in left
        if finding.code not in gone and (now := changed.get(finding.code, finding)) is not None
    ]


def _told_once(
    left: list[tuple[int, Finding]], codes: tuple[str, ...]
) -> list[tuple[int, Finding]]:
    """Of the findings of these codes the first or, without it, that of the largest share."""
    by_code = {finding.code: finding for _, finding in left}
    telling = [by_code[code] for code in codes if code in by_code]
    if len(telling) < 2:
        return left
    main = telling[0] if codes[0] in by_code else max(telling, key=_share)
    told = reduce(_backed, (one for one in telling if one is not main), main)
    return [
        (order, told if finding.code == main.code else finding)
        for order, finding in left
        if finding.code == main.code or finding.code not in codes
    ]


def _cost_of(by_code: dict[str, Finding]) -> Finding | None:
    return next((by_code[code] for code in SAYS_HOW_MUCH if code in by_code), None)


def _share(finding: Finding) -> float:
    """To whole percents: of equal shares the first is told."""
    return round(finding.share_ratio or 0.0, 2)


def _backed(finding: Finding, other: Finding) -> Finding:
    """The finding with what another saw of the same cost, and with its command for want of one.

    It stays as sure as it was: the other was sure of another share. What the experiment said of the
    other it says of the finding already.
    """
    evidence = tuple(dict.fromkeys((*finding.evidence, *_without_experiment(other).evidence)))
    told = msgspec.structs.replace(finding, evidence=evidence)
    if finding.preset is not None or finding.unset:
        return told
    return msgspec.structs.replace(
        told, preset=other.preset, overrides=other.overrides, unset=other.unset
    )


def _without_experiment(finding: Finding) -> Finding:
    evidence = tuple(one for one in finding.evidence if one.source != EXPERIMENT)
    return msgspec.structs.replace(finding, evidence=evidence)


def _with_kernels(
    left: list[tuple[int, Finding]], by_code: dict[str, Finding]
) -> list[tuple[int, Finding]]:
    """Which kernels keep the exchange from hiding says more than that it does not."""
    why, cost = by_code.get(SAYS_WHICH_KERNELS), _cost_of(by_code)
    if why is None or cost is None:
        return left
    evidence = tuple(dict.fromkeys((*why.evidence, *cost.evidence)))
    told = msgspec.structs.replace(why, evidence=evidence)
    return [
        (order, told if finding is why else finding)
        for order, finding in left
        if finding is not cost
    ]


def _with_cost(why: Finding, cost: Finding) -> Finding:
    """That the way is shut is certain, and what it costs was measured."""
    surer = max(why.confidence, cost.confidence, key=_SURENESS.index)
    evidence = tuple(dict.fromkeys((*why.evidence, *cost.evidence)))
    return msgspec.structs.replace(why, confidence=surer, evidence=evidence)


def without_repeats(verdict: Finding, others: Iterable[Finding]) -> Iterator[Finding]:
    """The others, each without its command where an earlier card has the same."""
    seen = {_applied(verdict)}
    for one in others:
        applied = _applied(one)
        if any(applied) and applied in seen:
            yield msgspec.structs.replace(one, preset=None, overrides={}, unset=())
        else:
            yield one
        seen.add(applied)


def _applied(finding: Finding) -> tuple[object, ...]:
    changes = tuple(sorted(finding.overrides.items()))
    return finding.preset, changes, tuple(sorted(finding.unset))
