"""One rank is late in every step, by the ranks' own clocks.

Seen when a rank waits for images, computes forward or issues its step for longer than the median of
the others, by 10 % of the step or more, and the others spend 10 % more than it does in their
backward pass, where they wait for it. Where the ranks' own lines are not there, the slowest and the
fastest rank of each window are compared. A late rank cannot be seen in the time of a step, which
the exchange makes equal on all: an injected 200 ms showed as 293.0 and 292.2 ms.
What to do: compare the clocks, the temperature and the power of that GPU with the others'; see
whether other programs use it or its cores, and whether its share of the images is larger.
Sources: traceml#252, ultralytics#8566, open_clip#703 (power brake), pytorch#85334 (power cable).
"""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.clocks import step_ms, window_lead_ms
from ringside.doctor.figures import num_devices
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.rank_windows import slowest
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "LATE-010"
CAUSE: Cause = "late_rank"
ORDER = 71

PARTS = ("data", "forward", "optimizer")


class Lead(NamedTuple):
    """By how much a rank is late and in what, and how long the others wait; which one, if known."""

    part: str
    ms: float
    waiting_ms: float
    step_ms: float
    rank: int | None
    source: str


def check(case: Case) -> Finding | None:
    lead = _by_rank(case) or _by_window(case)
    if lead is None or lead.ms / lead.step_ms < WARNING or lead.waiting_ms / lead.step_ms < WARNING:
        return None
    part = say(f"doctor.late_{lead.part}")
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        share_ratio=lead.ms / lead.step_ms,
        evidence=(
            seen(part, say("seen.longer", amount=f"{lead.ms:.1f} ms"), lead.source),
            seen(
                "others wait in backward",
                say("seen.a_step", amount=f"{lead.waiting_ms:.1f} ms"),
                lead.source,
            ),
            seen("step", f"{lead.step_ms:.1f} ms", lead.source),
        ),
        values={
            "who": say("doctor.late_one")
            if lead.rank is None
            else say("doctor.late_this", rank=lead.rank),
            "part": part,
            "ms": lead.ms,
        },
    )


def _by_rank(case: Case) -> Lead | None:
    """From the lines of each rank, which say who it is."""
    found = slowest(case.ranks)
    if not found:
        return None
    late = found[0]
    own = next(one for one in case.ranks if one.rank == late.rank)
    others = median(one.backward_ms for one in case.ranks if one.rank != late.rank)
    waiting = others - own.backward_ms
    return Lead(late.part, late.excess_ms, waiting, own.step_ms, late.rank, "ranks/rankN.jsonl")


def _by_window(case: Case) -> Lead | None:
    """From the slowest and the fastest rank of each window; who they are is not known."""
    step, waiting = step_ms(case), window_lead_ms(case, "backward")
    if (num_devices(case) or 1) < 2 or case.record is None or not step or waiting is None:
        return None
    leads = {part: window_lead_ms(case, part) or 0.0 for part in PARTS}
    part = max(leads, key=lambda name: leads[name])
    return Lead(part, leads[part], waiting, step, None, "events.jsonl")
