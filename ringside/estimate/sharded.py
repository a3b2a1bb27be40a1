"""Replays FSDP2: every unit's weights are gathered before it computes, gradients reduced after.

One unit is gathered ahead of the one that computes; collectives are serial. The time of a unit is
its share of the backward pass, in the forward pass too. FSDP's own work on the host is large and
was measured on two machines only, so an estimate of FSDP is rough where the host sets the pace.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ringside.estimate.buckets import GRADIENT_BYTES
from ringside.estimate.timeline import Replay
from ringside.estimate.work import Work
from ringside.measurements import Gradient

UNIT_LAUNCH_RATIO = 0.165
"""Of the host's time for a plain step, what each unit adds: 2 GPUs with 18 units took 64 to 87 ms
at 64 images a GPU against 22 ms of one GPU in one visit, and 109 to 125 against 23 in another: 0.11
to 0.25. This is nearer the first visit (ResNet-50, 2x H200, torch 2.11)."""

KEPT_LAUNCH_RATIO = 0.10
"""The same where weights stay gathered after forward (61 ms)."""

_BLOCK = re.compile(r"(.*?\.\d+)(?:\.|$)")


class Unit(NamedTuple):
    """A block that is sharded by itself: bytes of its float32 weights, share of the compute."""

    name: str
    num_bytes: int
    share_ratio: float


def block_of(name: str) -> str:
    """The block of a parameter: its name up to the first number, as `layer1.0`; else the root."""
    found = _BLOCK.match(name.removeprefix("_orig_mod.").removeprefix("module."))
    return found.group(1) if found else ""


def units_of(gradients: Sequence[Gradient], backward_us: float) -> list[Unit]:
    """The units in the order of the forward pass; what is in no block is the root's.

    torchvision and timm put numbers on blocks deeper or shallower (`layer1.0`, `blocks.3`).
    """
    bytes_of: dict[str, int] = {}
    ready_of: dict[str, float] = {}
    for gradient in gradients:
        block = block_of(gradient.name)
        bytes_of[block] = bytes_of.get(block, 0) + GRADIENT_BYTES * gradient.num_elements
        ready_of[block] = max(ready_of.get(block, 0.0), gradient.ready_us)
    order = sorted(ready_of, key=lambda block: ready_of[block])
    units, before_us = [], 0.0
    for block in order:
        share = (ready_of[block] - before_us) / backward_us if backward_us else 0.0
        units.append(Unit(block, bytes_of[block], max(0.0, share)))
        before_us = ready_of[block]
    return units[::-1]


def replay(
    work: Work, units: Sequence[Unit], gathers_us: Sequence[float], reduces_us: Sequence[float],
    *, reshards: bool, excludes: bool = False,
) -> Replay:  # fmt: skip
    """A step; `gathers_us` and `reduces_us` are the collectives of each unit.

    `excludes`: compute and collectives cannot run beside each other.
    """
    shares = [unit.share_ratio for unit in units]
    # What no unit accounts for runs before the first one.
    rest = max(0.0, 1.0 - sum(shares))
    gathers = list(zip(gathers_us, shares, strict=True))
    forward = _pass([(gather, share * work.forward_us) for gather, share in gathers])
    forward_us = forward + rest * work.forward_us
    backward = [
        (gather if reshards else 0.0, share * work.backward_us, reduce)
        for (gather, share), reduce in zip(gathers[::-1], reduces_us[::-1], strict=True)
    ]
    backward_us = _pass_back(backward) + rest * work.backward_us
    communication_us = sum(gathers_us) * (2 if reshards else 1) + sum(reduces_us)
    device_us = forward_us + backward_us + work.optimizer_us
    if excludes:
        device_us = max(device_us, work.device_us + communication_us)
    ratio = UNIT_LAUNCH_RATIO if reshards else KEPT_LAUNCH_RATIO
    launch_us = work.launch_us * (1 + ratio * len(units))
    exposed_us = max(0.0, device_us - work.device_us)
    return Replay(
        step_us=max(device_us, launch_us),
        communication_us=communication_us,
        exposed_us=exposed_us,
        hidden_us=max(0.0, communication_us - exposed_us),
    )


def _pass(units: Sequence[tuple[float, float]]) -> float:
    """The end of a forward pass of (gather, compute) with one gather ahead."""
    link = compute = begin = 0.0
    for gather_us, compute_us in units:
        link = max(link, begin) + gather_us
        begin = max(compute, link)
        compute = begin + compute_us
    return compute


def _pass_back(units: Sequence[tuple[float, float, float]]) -> float:
    """The end of a backward pass of (gather, compute, reduce) on one serial link.

    The gather of the next unit goes before the reduction of this one, as it is asked for first.
    """
    link = compute = begin = 0.0
    waiting_us = 0.0
    for gather_us, compute_us, reduce_us in units:
        gathered = max(link, begin) + gather_us
        link = max(gathered, compute) + waiting_us if waiting_us else gathered
        begin = max(compute, gathered) if gather_us else compute
        compute = begin + compute_us
        waiting_us = reduce_us
    return max(link, compute) + waiting_us
