"""The most that a remedy can save of a step: bounds of what its command does, not of the cause."""

from __future__ import annotations

from dataclasses import replace

from ringside.doctor.applying import fewer_bytes
from ringside.doctor.case import Case
from ringside.doctor.clocks import profiled_ms, step_ms
from ringside.doctor.figures import alone_us, spec_of
from ringside.doctor.phrasing import Remedy
from ringside.doctor.shares import share_of, transfer_share


def with_bound(remedy: Remedy, case: Case) -> Remedy:
    """The remedy with its own bound; without a command that of taking the cause away."""
    return replace(remedy, gain_ratio=bound_of(remedy, case))


def fewer_bytes_of(case: Case) -> Remedy | None:
    """Half the bytes, or an exchange that comes less often, with the bound."""
    remedy = fewer_bytes(spec_of(case))
    return with_bound(remedy, case) if remedy is not None else None


def bound_of(remedy: Remedy, case: Case) -> float | None:
    """min(exposed, transfer/2) for a 16-bit hook: each message takes half as long at the least, and
    what is hidden saves nothing. exposed * (1 - 1/k) for k times as many micro-steps an exchange.
    All that is exposed where a faster way is opened. None where the exposed share is not known."""
    exposed = transfer_share(case)
    if exposed is None:
        return None
    steps = remedy.overrides.get("accumulation_steps")
    if steps is not None:
        spec = spec_of(case)
        before = spec.training.accumulation_steps if spec is not None else 1
        return exposed * (1 - before / int(steps))
    halves = "comm_hook" in remedy.overrides or (remedy.preset or "").endswith("_compress")
    whole = whole_transfer_share(case)
    return min(exposed, whole / 2) if halves and whole is not None else exposed


def whole_transfer_share(case: Case) -> float | None:
    """All transfers of a step, hidden ones too, by the trace; else by the sweep of its messages."""
    profiled = profiled_ms(case)
    buckets = case.facts.pace.buckets if case.facts is not None else ()
    spent_us = sum(bucket.num_per_step * bucket.transfer_us for bucket in buckets)
    if profiled and spent_us > 0:
        return share_of(case, spent_us / 1000 / profiled, part="work")
    alone, step = alone_us(case), step_ms(case)
    return alone / 1000 / step if alone is not None and step else None
