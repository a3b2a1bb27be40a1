"""The optimizer step of each strategy, from one device's work and the link.

`step_of` answers with a `Step` or raises `NotEstimated` with a sentence that says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ringside.estimate import sharded
from ringside.estimate.buckets import bucket_sizes, buckets_of
from ringside.estimate.links import Link, Timing
from ringside.estimate.timeline import Message, Replay, replay
from ringside.estimate.work import Work
from ringside.measurements import Description
from ringside.measurements.sweep import Operation
from ringside.spec import RunSpec
from ringside.words import say

SLOWDOWN_RATIO = {"nccl": 0.07, "gloo": 0.0}
"""How much slower compute is while a collective runs beside it: its kernels occupy part of the
GPU. 54.8 against 53.2 ms of kernels a step, 22 ms of it beside all-reduces (ResNet-50, bf16, 256
images, 2x H200, sockets). gloo's threads take the cores of a CPU that is not full."""

WEIGHTS_TOUCHED = {"sgd": 5, "adamw": 7}
"""Arrays of the size of the weights that an optimizer reads or writes in a step: what its time
says about the device's memory."""

ARRAYS_CAST = 3
"""A 16-bit hook reads fp32, writes 16 bit, and back: twice one array and a half."""


class NotEstimated(Exception):  # noqa: N818
    """A sentence that says what is missing or not modelled."""


@dataclass(frozen=True)
class Step:
    """An optimizer step; times in microseconds, `num_bytes` what a rank hands to collectives.

    `linkless_us`: the step if every collective took no time; less may be won than is exposed, where
    the host sets the pace and the device makes up for waiting. `communication_spread_us`: how much
    longer the slow tenth of the repeats makes it.
    """

    step_us: float
    communication_us: float
    exposed_us: float
    num_bytes: int
    linkless_us: float = 0.0
    communication_spread_us: float = 0.0
    is_extrapolated: bool = False
    is_rough: bool = False

    @property
    def gain_ratio(self) -> float:
        """What a link that takes no time would save of the step."""
        return max(0.0, 1 - self.linkless_us / self.step_us) if self.step_us else 0.0


def step_of(spec: RunSpec, description: Description, work: Work, link: Link | None) -> Step:
    """One optimizer step of `spec`; `work` is at its micro-batch."""
    refuse_unmodelled(spec)
    if spec.num_processes == 1:
        return _alone(spec, work)
    if link is None:
        raise NotEstimated(say("estimate.no_sweep", num=spec.num_processes))
    if not work.gradients:
        raise NotEstimated(say("estimate.no_gradients"))
    step = _over(link, spec, description, work)
    return replace(step, linkless_us=_over(link.free(), spec, description, work).step_us)


def _over(link: Link, spec: RunSpec, description: Description, work: Work) -> Step:
    if spec.strategy == "local_sgd":
        return _local_sgd(spec, description, work, link)
    if spec.strategy == "fsdp":
        excludes = excludes_exchange(spec, description, link)
        return _fsdp(spec, work, link, excludes=excludes)
    return _ddp(spec, description, work, link)


def refuse_unmodelled(spec: RunSpec) -> None:
    """NotEstimated for what no measurement here stands for."""
    training = spec.training
    fsdp = spec.accelerate.fsdp_config
    what: str | None = None
    if spec.strategy in ("data_parallel", "model_parallel"):
        what = spec.strategy
    elif fsdp is not None and fsdp.fsdp_offload_params:
        what = "offload"
    elif fsdp is not None and spec.device == "cpu":
        # A CPU has no launches, by which `sharded` counts: 38 ms were said, and 67 measured.
        what = "sharded_on_cpu"
    elif training.comm_hook == "power_sgd":
        what = "power_sgd"
    elif training.sync_batchnorm:
        what = "sync_batchnorm"
    if what is not None:
        reason = say(f"estimate.unmodelled_{what}")
        raise NotEstimated(say("estimate.unmodelled", reason=reason, preset=spec.preset))


def _alone(spec: RunSpec, work: Work) -> Step:
    step_us = _micro_steps_us(spec, work) + work.step_us
    return Step(step_us, 0.0, 0.0, 0, linkless_us=step_us)


def _micro_steps_us(spec: RunSpec, work: Work) -> float:
    """All micro-steps but the last: forward and backward, no exchange, no optimizer."""
    device_us = work.forward_us + work.backward_us
    launch_us = work.launch_forward_us + work.launch_backward_us
    return (spec.training.accumulation_steps - 1) * max(device_us, launch_us)


def _ddp(spec: RunSpec, description: Description, work: Work, link: Link) -> Step:
    """The buckets of `layout`, with half the bytes and two casts under a 16-bit hook."""
    hook = spec.training.comm_hook
    buckets, sizes = buckets_of(spec, work.gradients), bucket_sizes(spec, work.gradients)
    timings = [timed(link, "all_reduce", size, hook if hook != "no" else "fp32") for size in sizes]
    cast_us = 0.0
    if hook != "no":
        touched = WEIGHTS_TOUCHED[spec.training.optimizer]
        cast_us = work.optimizer_us * ARRAYS_CAST / touched / sum(sizes)
    messages = [
        Message(_share(bucket.ready_us, work), timing.us + cast_us * size)
        for bucket, timing, size in zip(buckets, timings, sizes, strict=True)
    ]
    wrapped = work.with_wrapper()
    slowdown_ratio = SLOWDOWN_RATIO.get(link.backend or "", 0.0)
    silent = [work] * (spec.training.accumulation_steps - 1)
    found = replay(
        wrapped, messages, slowdown_ratio=slowdown_ratio, before=silent,
        excludes=excludes_exchange(spec, description, link),
    )  # fmt: skip
    return _step(0.0, found, sizes, timings)


def excludes_exchange(spec: RunSpec, description: Description, link: Link) -> bool:
    """Whether compute and exchange cannot run beside each other on this device.

    In fp32 and channels_last cuDNN's batch-norm is persistent: its blocks take all registers of
    every multiprocessor, and NCCL's kernel holds some of them while it runs. 0.4 % of the exchange
    overlapped over sockets and 1.2 % over shared memory, against 17 to 85 % in bf16, where torch's
    own batch-norm runs (ResNet-50, 2x H200, torch 2.11; docs/decisions/0029). A compiled model has
    none of these kernels. Whether there is a batch-norm its running statistics tell; a description
    from before they were counted has only all buffers together.
    """
    running = description.running_bytes
    return (
        link.backend == "nccl"
        and spec.accelerate.mixed_precision == "no"
        and spec.channels_last
        and not spec.training.compile
        # A frozen one stays as it was, and does not look at the batch.
        and spec.training.freeze == "no"
        and (description.buffer_bytes if running is None else running) > 0
    )


def _local_sgd(spec: RunSpec, description: Description, work: Work, link: Link) -> Step:
    """Steps alone, then one message of all weights and statistics, which nothing hides."""
    every = spec.training.local_sgd_steps or 1
    num_bytes = description.parameter_bytes + description.buffer_bytes
    timing = timed(link, "all_reduce", num_bytes, "fp32")
    alone_us = _micro_steps_us(spec, work) + work.step_us
    return Step(
        step_us=alone_us + timing.us / every,
        communication_us=timing.us / every,
        exposed_us=timing.us / every,
        num_bytes=num_bytes // every,
        communication_spread_us=timing.us * timing.spread_ratio / every,
        is_extrapolated=timing.is_extrapolated,
    )


def _fsdp(spec: RunSpec, work: Work, link: Link, *, excludes: bool) -> Step:
    """Units gathered before they compute and reduced after; see `sharded`, and
    `excludes_exchange`."""
    config = spec.accelerate.fsdp_config
    reshards = config is None or config.fsdp_reshard_after_forward
    halves = spec.training.reduce_dtype != "fp32"
    units = sharded.units_of(work.gradients, work.backward_us)
    gathers, reduces, timings, sizes = [], [], [], []
    for unit in units:
        reduced = unit.num_bytes // (2 if halves else 1)
        gather = timed(link, "all_gather", unit.num_bytes, "fp32")
        reduce = timed(link, "reduce_scatter", reduced, spec.training.reduce_dtype)
        gathers.append(gather.us)
        reduces.append(reduce.us)
        timings += [gather, gather, reduce] if reshards else [gather, reduce]
        sizes += [unit.num_bytes] * (2 if reshards else 1) + [reduced]
    found = sharded.replay(
        work, units, gathers, reduces, reshards=reshards, excludes=excludes
    )  # fmt: skip
    step = _step(_micro_steps_us(spec, work), found, sizes, timings)
    return replace(step, is_rough=True)


def _step(before_us: float, found: Replay, sizes: Sequence[int], timings: list[Timing]) -> Step:
    spread_us = sum(timing.us * timing.spread_ratio for timing in timings)
    exposed_share = found.exposed_us / found.communication_us if found.communication_us else 0.0
    return Step(
        step_us=before_us + found.step_us,
        communication_us=found.communication_us,
        exposed_us=found.exposed_us,
        num_bytes=sum(sizes),
        communication_spread_us=spread_us * exposed_share,
        is_extrapolated=any(timing.is_extrapolated for timing in timings),
    )


def timed(link: Link, operation: Operation, num_bytes: int, dtype: str) -> Timing:
    """The time of one collective, or NotEstimated with the size that was not measured."""
    found = link.timing(operation, num_bytes, dtype)
    if found is None:
        raise NotEstimated(
            say(
                "estimate.no_size",
                operation=operation.replace("_", "-"),
                mb=num_bytes / 1e6,
                num=link.num_ranks,
            )
        )
    return found


def _share(ready_us: float, work: Work) -> float:
    return min(1.0, ready_us / work.backward_us) if work.backward_us else 1.0
