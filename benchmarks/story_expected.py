"""What the doctor has to say of a cell: by the clocks of one device and the sweep, without a trace.

Nothing of the run itself enters but the length of its step. Two accounts are made. `link`: what of
the exchange cannot hide, however well it overlaps: DDP's all-reduces take their time alone by the
sweep, less the last backward pass; of FSDP's collectives, less forward and backward. `launch`: what
one device already idles alone, because its host takes longer to launch a step than the device to
do it. Both are shares of the measured step, and judged by the doctor's own bands.
"""

from __future__ import annotations

from typing import NamedTuple

from ringside.doctor.bands import CRITICAL, WARNING
from ringside.estimate.links import Link
from ringside.estimate.steps import NotEstimated, step_of
from ringside.estimate.work import Work, work_at
from ringside.measurements import Description, Sweep
from ringside.spec import RunSpec

FINE = ("compute", "none")
"""A device that computes all the time; `none` where it scales by 90 % as well."""

OF_FSDP = ("link", "launch", *FINE)
NEAR = 0.5
"""Of two large shares the smaller one may be named where it is at least half of the larger."""


class Expected(NamedTuple):
    """Causes that count as right, none where nobody can say; and the rule in a sentence."""

    causes: tuple[str, ...]
    rule: str


def expected(
    spec: RunSpec, step_ms: float | None, description: Description | None, sweep: Sweep | None
) -> Expected:
    """The causes that may hold this set-up back."""
    if spec.strategy == "data_parallel":
        return Expected(("data_parallel",), "one process copies the model to all devices each step")
    if spec.device == "cpu" and spec.num_processes == 1:
        # As docs/checks says of UNEXPLAINED-002.
        return Expected(("unexplained",), "its trace holds neither GPU work nor collectives")
    work = work_at(description, spec.micro_batch) if description else None
    if work is None or step_ms is None:
        return Expected((), "one device was not described at this batch")
    if spec.num_processes == 1:
        return by_shares(0.0, launch_ms(spec, work) / step_ms)
    if sweep is None or description is None:
        return Expected((), "no sweep of this transport")
    try:
        exchange = step_of(spec, description, work, Link(sweep, spec.num_processes))
    except NotEstimated as why:
        return Expected((), str(why))
    left_ms = max(0.0, exchange.communication_us / 1000 - hiding_ms(spec, work))
    found = by_shares(left_ms / step_ms, launch_ms(spec, work) / step_ms)
    if spec.strategy == "fsdp" and "link" not in found.causes:
        found = Expected(
            OF_FSDP, found.rule + "; what FSDP copies and launches itself is in neither account"
        )
    return with_transport(spec, found)


def by_shares(link: float, launch: float) -> Expected:
    """From 20 % on the largest share is the cause, below 10 % none is; in between either counts."""
    rule = f"link {link:.0%}, launch {launch:.0%} of the step"
    shares = {"link": link, "launch": launch}
    largest = max(shares.values())
    known = tuple(
        name for name, share in shares.items() if share >= max(WARNING, NEAR * largest)
    )  # fmt: skip
    return Expected(known if largest >= CRITICAL else known + FINE, rule)


def with_transport(spec: RunSpec, found: Expected) -> Expected:
    """The variable that closes the fast way is what makes the link slow: naming it is right too."""
    closed = sorted(name for name in spec.environment if name.endswith("_DISABLE"))
    if not closed or "link" not in found.causes:
        return found
    return Expected((*found.causes, "environment"), f"{found.rule}, with {' and '.join(closed)}")


def hiding_ms(spec: RunSpec, work: Work) -> float:
    """What of an optimizer step the exchange can run beside at most: DDP's is in the last one."""
    passes_us = work.backward_us + (work.forward_us if spec.strategy == "fsdp" else 0.0)
    return passes_us / 1000


def launch_ms(spec: RunSpec, work: Work) -> float:
    """What one device idles in an optimizer step for want of launches, without any exchange."""
    more = spec.training.accumulation_steps - 1
    device_us = work.device_us + more * (work.forward_us + work.backward_us)
    host_us = work.launch_us + more * (work.launch_forward_us + work.launch_backward_us)
    return max(0.0, host_us - device_us) / 1000
