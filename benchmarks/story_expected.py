"""What the doctor has to say of a cell: by the clocks of one device and the sweep, without a trace.

Nothing of the run itself enters but the length of its step. Two accounts are made. `link`: what of
the exchange cannot hide, however well it overlaps: DDP's all-reduces take their time alone by the
sweep, less the last backward pass; of FSDP's collectives, less forward and backward; nothing less
where compute and exchange exclude each other. `launch`: what else the step is longer than the
device's own work, which one device did with its launches far ahead; the images lie on the device,
so nothing but the host is left to wait for. It is at least what one device idles alone. Both are
shares of the measured step, and judged by the doctor's own bands.
"""

from __future__ import annotations

from typing import NamedTuple

from ringside.doctor.bands import CRITICAL, WARNING
from ringside.estimate.links import Link
from ringside.estimate.steps import NotEstimated, excludes_exchange, step_of
from ringside.estimate.work import Work, work_at
from ringside.measurements import Description, Sweep
from ringside.spec import RunSpec

FINE = ("compute", "none")
"""A device that computes all the time; `none` where it scales by 90 % as well."""

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
    if description is None or work is None or step_ms is None:
        return Expected((), "one device was not described at this batch")
    rest_ms = max(0.0, step_ms - device_ms(spec, description, work))
    if spec.num_processes == 1:
        return by_shares(0.0, rest_ms / step_ms)
    if sweep is None:
        return Expected((), "no sweep of this transport")
    link = Link(sweep, spec.num_processes)
    try:
        exchange = step_of(spec, description, work, link)
    except NotEstimated as why:
        return Expected((), str(why))
    hidden_ms = 0.0 if excludes_exchange(spec, description, link) else hiding_ms(spec, work)
    left_ms = min(rest_ms, max(0.0, exchange.communication_us / 1000 - hidden_ms))
    # Host and link run side by side: without one of them the other holds the step up as before.
    idle_ms = max(rest_ms - left_ms, min(rest_ms, idle_alone_ms(spec, description, work)))
    found = by_shares(left_ms / step_ms, idle_ms / step_ms)
    if spec.strategy == "fsdp" and "link" not in found.causes:
        # What it copies around its collectives counts as exchange for the doctor.
        rule = f"{found.rule}; what FSDP copies itself is in the second account"
        found = Expected(("link", *found.causes), rule)
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


def device_ms(spec: RunSpec, description: Description, work: Work) -> float:
    """The device's own work of an optimizer step, as one device does it that waits for nothing."""
    more = spec.training.accumulation_steps - 1
    device_us = work.device_us + more * (work.forward_us + work.backward_us)
    # `Work` takes the whole step for the device's wherever the host seemed to be fast enough.
    timed = (p.device_us for p in description.profiles if p.batch == spec.micro_batch)
    ratio = (next(timed, None) or work.device_us) / work.device_us
    return ratio * device_us / 1000


def idle_alone_ms(spec: RunSpec, description: Description, work: Work) -> float:
    """What one device waits for its host in the same micro-steps, without any exchange."""
    more = spec.training.accumulation_steps - 1
    launch_us = work.launch_forward_us + work.launch_backward_us
    step_us = work.step_us + more * max(work.forward_us + work.backward_us, launch_us)
    return max(0.0, step_us / 1000 - device_ms(spec, description, work))
