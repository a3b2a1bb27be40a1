"""Parts of a trace as shares of the run's own step, so that all shares have one denominator.

The profiler slows the host's launches, and with them the step: 46 ms became 73 on two H200s. What
the device does takes as long as before; what the step is longer is time for want of launches.
"""

from __future__ import annotations

from typing import NamedTuple

from ringside.doctor.case import Case
from ringside.doctor.clocks import profiled_ms, window_ms
from ringside.doctor.experiments import exchange_share
from ringside.doctor.findings import Evidence
from ringside.trace.findings import Confidence
from ringside.words import say

# Two steps that are this close are one.
LONGER = 1.15


class Stretch(NamedTuple):
    """A profiled step that is longer than the run's own, and what its device computes."""

    own_ms: float
    profiled_ms: float
    compute_ms: float

    def share(self, ratio: float) -> float:
        """A part of the profiled step in the own one: at most what does not compute there."""
        idle_ms = max(0.0, self.own_ms - self.compute_ms)
        return min(ratio * self.profiled_ms, idle_ms) / self.own_ms

    def of_launches(self, ratio: float) -> float:
        """The same of idling for want of launches, less what the profiler added to it."""
        added_ms = self.profiled_ms - self.own_ms
        return self.share(max(0.0, ratio - added_ms / self.profiled_ms))

    def of_work(self, ratio: float) -> float:
        """The same of what the device does, hidden or not."""
        return min(1.0, ratio * self.profiled_ms / self.own_ms)


def stretch_of(case: Case) -> Stretch | None:
    """None where the profiled step is no longer, or where nobody timed one without a profiler.

    On a CPU the profiler slows each operator, so that the shares stay as they are.
    """
    own, profiled = window_ms(case, "step"), profiled_ms(case)
    if case.facts is None or not own or profiled is None or profiled <= LONGER * own:
        return None
    pace = case.facts.pace
    if pace.is_cpu_estimate:
        return None
    return Stretch(own, profiled, pace.breakdown.ratio("compute") * profiled)


def share_of(case: Case, ratio: float, *, part: str = "") -> float:
    """A share of the profiled step as one of the run's own; `part` host_wait, or work."""
    stretch = stretch_of(case)
    if stretch is None:
        return ratio
    of = {"host_wait": stretch.of_launches, "work": stretch.of_work}
    return of.get(part, stretch.share)(ratio)


def traced_share(case: Case, *parts: str) -> float | None:
    """Parts of the breakdown of the rank that sets the pace, together."""
    if case.facts is None:
        return None
    return share_of(case, sum(case.facts.pace.breakdown.ratio(part) for part in parts))


def transfer_share(case: Case) -> float | None:
    """What the exchange costs of the step: by the experiment, where it decided that; else the
    exposed transfer of the rank that sets the pace, without waiting."""
    decided = exchange_share(case)
    return traced_share(case, "exposed_transfer") if decided is None else decided


def exposed_share(case: Case) -> float | None:
    """Exposed transfer and waiting of the rank that sets the pace."""
    return traced_share(case, "exposed_transfer", "exposed_wait")


def both_steps(case: Case) -> tuple[Evidence, ...]:
    """The run's own step beside the profiled one, where they differ."""
    stretch = stretch_of(case)
    if stretch is None:
        return ()
    value = say("doctor.both_steps", own=stretch.own_ms, profiled=stretch.profiled_ms)
    return (Evidence(label=say("doctor.own_step"), value=value, source="events.jsonl"),)


def at_most_medium(case: Case, confidence: Confidence) -> Confidence:
    """Of idling for want of launches, which the profiler makes longer."""
    return "medium" if confidence == "high" and stretch_of(case) is not None else confidence
