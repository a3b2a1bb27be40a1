"""Replays the steps of one rank: host launches, device work and one stream of communication.

All ranks are alike, so one stands for all. The host runs ahead of the device and never waits for
it within a step; the device starts a piece of work when it is launched and the work before it is
done. Launches and work are spread evenly over a phase, so the work at share x of a phase of work W
and launches L, begun by the host at h and by the device at d, is done at max(max(d, h) + x W,
h + x L). Communication is serial: a bucket is sent when its last gradient is ready and the bucket
before it has arrived. The optimizer waits for the last bucket; the host does not. Where the
kernels of the two cannot share the device (`excludes`), backward stands still while a bucket is
sent; only what the device would wait for the host anyway is won.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ringside.estimate.work import Work

WARM_UP_STEPS = 10
COUNTED_STEPS = 10
"""In between the steps settle: the host's lead and the device's lag no longer change."""


@dataclass(frozen=True)
class Message:
    """A collective of `duration_us` that may start at `share_ratio` of the backward pass."""

    share_ratio: float
    duration_us: float


@dataclass(frozen=True)
class Replay:
    """A settled step, in microseconds.

    `exposed_us`: the device has nothing to do but wait for the last bucket, that is max(0, end of
    the last bucket - end of backward). `step_us` may be shorter than compute plus exposed: where
    the host sets the pace, the device makes up for waiting. `hidden_us`: communication while the
    device computes.
    """

    step_us: float
    communication_us: float
    exposed_us: float
    hidden_us: float


def replay(
    work: Work, messages: Sequence[Message] = (), *,
    slowdown_ratio: float = 0.0, before: Sequence[Work] = (), excludes: bool = False,
) -> Replay:  # fmt: skip
    """A step whose gradients are sent as `messages`, in this order.

    `slowdown_ratio`: by how much compute is slower while a collective runs beside it. `before`:
    the micro-steps of the same step that only add to the gradients. `excludes`: nothing runs
    beside a collective.
    """
    if excludes:
        return _settled(work, messages, before, _one_after_the_other)
    found = _settled(work, messages, before)
    if slowdown_ratio == 0.0 or not messages:
        return found
    # Slower compute hides more, which slows it again; a few rounds settle that.
    for _ in range(4):
        slower_us = work.backward_us + slowdown_ratio * found.hidden_us
        found = _settled(replace(work, backward_us=slower_us), messages, before)
    return found


Sender = Callable[[float, float, Work, Sequence[Message]], float]
"""From where the device and the host are, the backward pass and its messages: when all arrived."""


def _settled(
    work: Work, messages: Sequence[Message], before: Sequence[Work], send: Sender | None = None
) -> Replay:
    send = send or _send
    host = device = 0.0
    begin = exposed_us = hidden_us = 0.0
    for step in range(WARM_UP_STEPS + COUNTED_STEPS):
        if step == WARM_UP_STEPS:
            begin, exposed_us, hidden_us = device, 0.0, 0.0
        for silent in before:
            device = _phase(device, host, silent.forward_us, silent.launch_forward_us)
            host += silent.launch_forward_us
            device = _phase(device, host, silent.backward_us, silent.launch_backward_us)
            host += silent.launch_backward_us
        device = _phase(device, host, work.forward_us, work.launch_forward_us)
        host += work.launch_forward_us
        backward_end = _phase(device, host, work.backward_us, work.launch_backward_us)
        sent = send(device, host, work, messages)
        host += work.launch_backward_us
        exposed = max(0.0, sent - backward_end)
        exposed_us += exposed
        hidden_us += sum(message.duration_us for message in messages) - exposed
        device = max(backward_end, sent)
        device = _phase(device, host, work.optimizer_us, work.launch_optimizer_us)
        host += work.launch_optimizer_us
    return Replay(
        step_us=(device - begin) / COUNTED_STEPS,
        communication_us=sum(message.duration_us for message in messages),
        exposed_us=exposed_us / COUNTED_STEPS,
        hidden_us=max(0.0, hidden_us / COUNTED_STEPS),
    )


def _phase(device: float, host: float, work_us: float, launch_us: float, x: float = 1.0) -> float:
    return max(max(device, host) + x * work_us, host + x * launch_us)


def _send(device: float, host: float, work: Work, messages: Sequence[Message]) -> float:
    """When the last message has arrived; the begin of time without any."""
    end = 0.0
    for message in messages:
        ready = _phase(device, host, work.backward_us, work.launch_backward_us, message.share_ratio)
        end = max(ready, end) + message.duration_us
    return end


def _one_after_the_other(
    device: float, host: float, work: Work, messages: Sequence[Message]
) -> float:
    """The same where backward stands still meanwhile; the last message follows the last launch."""
    if not messages:
        return 0.0
    all_us = work.backward_us + sum(message.duration_us for message in messages)
    last = host + work.launch_backward_us + messages[-1].duration_us
    return max(max(device, host) + all_us, last)
