"""What one device and its host do in a micro-step, at any batch between measured ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from statistics import median

from ringside.measurements import Description, Gradient, StepProfile

HOST_BOUND_RATIO = 0.95
"""From this share of the step on, launching is what the step takes."""

REACH = 2.0
"""How far outside the measured batches a step may be asked for, as a factor."""


@dataclass(frozen=True)
class Work:
    """One micro-step: the device's work and the host's launches, by phase, in microseconds.

    Device and host run side by side: a phase ends when the device has done its work and the host
    has launched it. `gradients` are timed from the start of the backward pass on the device.
    `wrapper_us`: what DDP's hooks add to the backward pass, without traffic.
    `is_device_known` tells that the device's own work is known although the host holds it up.
    """

    batch: int
    forward_us: float
    backward_us: float
    optimizer_us: float
    launch_forward_us: float
    launch_backward_us: float
    launch_optimizer_us: float
    gradients: tuple[Gradient, ...]
    wrapper_us: float
    spread_ratio: float
    is_device_known: bool = True
    is_extrapolated: bool = False

    @property
    def device_us(self) -> float:
        """The device's work of the step."""
        return self.forward_us + self.backward_us + self.optimizer_us

    @property
    def launch_us(self) -> float:
        """The host's work of the step."""
        return self.launch_forward_us + self.launch_backward_us + self.launch_optimizer_us

    @property
    def step_us(self) -> float:
        """The step of a single process: whichever of the two is longer."""
        return max(self.device_us, self.launch_us)

    @property
    def is_host_bound(self) -> bool:
        """Whether the device waits for the host's launches."""
        return self.launch_us >= self.device_us

    def scaled(self, ratio: float) -> Work:
        """The same work on a device and a host that take `ratio` times as long."""
        return replace(
            self,
            forward_us=ratio * self.forward_us,
            backward_us=ratio * self.backward_us,
            optimizer_us=ratio * self.optimizer_us,
            launch_forward_us=ratio * self.launch_forward_us,
            launch_backward_us=ratio * self.launch_backward_us,
            launch_optimizer_us=ratio * self.launch_optimizer_us,
            wrapper_us=ratio * self.wrapper_us,
            gradients=_stretched(self.gradients, ratio),
        )

    def crowded(self, ratio: float) -> Work:
        """The same work where others do it beside it: what sets the pace takes `ratio` times."""
        if not self.is_host_bound:
            return self.scaled(ratio)
        return replace(
            self,
            launch_forward_us=ratio * self.launch_forward_us,
            launch_backward_us=ratio * self.launch_backward_us,
            launch_optimizer_us=ratio * self.launch_optimizer_us,
            wrapper_us=ratio * self.wrapper_us,
        )

    def with_wrapper(self) -> Work:
        """The same work inside DDP: its hooks run on whichever of the two sets the pace."""
        if self.is_host_bound:
            return replace(self, launch_backward_us=self.launch_backward_us + self.wrapper_us)
        backward_us = self.backward_us + self.wrapper_us
        ratio = backward_us / self.backward_us if self.backward_us else 1.0
        return replace(self, backward_us=backward_us, gradients=_stretched(self.gradients, ratio))


def work_at(description: Description, batch: int) -> Work | None:
    """The work at `batch` images; None farther than a factor of 2 outside the measured batches.

    Between two batches every figure is linear in the batch; so it is beyond them.
    """
    known = sorted((p for p in description.profiles if p.step_us), key=lambda p: p.batch)
    # fp16's gradient scaler reads whether gradients are finite, so there the host waits for the
    # device in every step and never gets ahead: what the device waits is lost.
    runs_ahead = description.precision != "fp16"
    works = [_work(profile, known if runs_ahead else []) for profile in known]
    if exact := next((work for work in works if work.batch == batch), None):
        return exact
    if len(works) < 2 or not is_within_reach([work.batch for work in works], batch):
        return None
    above = next((i for i, work in enumerate(works) if work.batch > batch), len(works) - 1)
    first = min(max(above - 1, 0), len(works) - 2)
    return _between(works[first], works[first + 1], batch)


def is_within_reach(batches: Collection[int], batch: int) -> bool:
    """Whether a straight line through measured batches may be asked for this one."""
    return min(batches) / REACH <= batch <= max(batches) * REACH


def _work(profile: StepProfile, known: list[StepProfile]) -> Work:
    """Device and host so that the longer one is exactly the measured step.

    `known`: all profiles; empty where the host cannot run ahead.
    """
    step_us = median(profile.step_us)
    host_us = min(step_us, _host_us(profile, known)) if known else 0.0
    is_host_bound = bool(known) and _is_host_bound(profile)
    busy_us = _busy_us(profile, known) if is_host_bound else step_us
    device_us = min(step_us, busy_us or step_us)
    launch_us = step_us if is_host_bound else host_us
    forward, backward, optimizer = _shares(profile)
    optimizer_us = _optimizer_us(known, device_us) if is_host_bound else None
    if optimizer_us is None:
        optimizer_us = optimizer * device_us
    passes = forward + backward
    backward_us = backward / passes * (device_us - optimizer_us) if passes else 0.0
    ratio = backward_us / profile.backward_us if profile.backward_us else 0.0
    wrapped_us = median(profile.wrapped_step_us) if profile.wrapped_step_us else step_us
    return Work(
        batch=profile.batch,
        forward_us=device_us - optimizer_us - backward_us,
        backward_us=backward_us,
        optimizer_us=optimizer_us,
        launch_forward_us=forward * launch_us,
        launch_backward_us=backward * launch_us,
        launch_optimizer_us=optimizer * launch_us,
        gradients=_stretched(profile.gradients, ratio),
        wrapper_us=max(0.0, wrapped_us - step_us),
        spread_ratio=_spread(profile.step_us),
        is_device_known=busy_us is not None,
    )


def _shares(profile: StepProfile) -> tuple[float, float, float]:
    """Of the step by its marks: forward, backward, optimizer. They add up to 1."""
    parts = profile.forward_us, profile.backward_us, profile.optimizer_us
    # What lies between the marks (losses, copies, clearing gradients) counts as forward.
    between_us = max(0.0, median(profile.step_us) - sum(parts))
    whole_us = sum(parts) + between_us
    return (parts[0] + between_us) / whole_us, parts[1] / whole_us, parts[2] / whole_us


def _optimizer_us(known: list[StepProfile], device_us: float) -> float | None:
    """The device's time for the optimizer where the host sets the pace; None where nothing tells.

    Marks are at the pace of whichever is slower, so there they show launches. No batch changes the
    optimizer's own time, so it is that of a batch at which the device sets the pace. Without one,
    the device's time that does not grow with the batch is that of kernels too small to fill it: it
    is shared as their launches are, and in what grows the optimizer has no part.
    """
    free = [profile.optimizer_us for profile in known if not _is_host_bound(profile)]
    if free:
        return min([*free, device_us])
    first, last = known[0], known[-1]
    if first.device_us is None or last.device_us is None or first.batch == last.batch:
        return None
    slope = (last.device_us - first.device_us) / (last.batch - first.batch)
    fixed_us = min(device_us, max(0.0, first.device_us - slope * first.batch))
    return fixed_us * min(_shares(first)[2], _shares(last)[2])


def _host_us(profile: StepProfile, known: list[StepProfile]) -> float:
    """The host's launches of a step, where the device sets the pace.

    No batch changes how many there are. So where the host sets the pace at another batch, its many
    steps say it better than the few that were launched alone here: on one H200 these took 18 to
    36 ms for the same launches, in one visit.
    """
    paced = [median(other.step_us) for other in known if _is_host_bound(other)]
    return median(paced) if paced else profile.host_us or 0.0


def _is_host_bound(profile: StepProfile) -> bool:
    """Whether the host's launches, not the device's work, make the step as long as it is."""
    if profile.host_us is None:
        return False
    if profile.device_us is not None:
        return profile.host_us > profile.device_us
    return profile.host_us >= HOST_BOUND_RATIO * median(profile.step_us)


def _busy_us(profile: StepProfile, known: list[StepProfile]) -> float | None:
    """The device's own work where the host sets the pace: measured, else from larger batches.

    Batches at which the device sets the pace show its work; it is linear in the batch.
    """
    if profile.device_us is not None:
        return profile.device_us
    free = [(other.batch, median(other.step_us)) for other in known if not _is_host_bound(other)]
    if not free:
        return None
    (first, first_us), (last, last_us) = free[0], free[-1]
    if first == last:
        return last_us * profile.batch / last
    slope = (last_us - first_us) / (last - first)
    return max(first_us + slope * (profile.batch - first), last_us * profile.batch / last)


def _between(low: Work, high: Work, batch: int) -> Work:
    place = (batch - low.batch) / (high.batch - low.batch)

    def mixed(a: float, b: float) -> float:
        return max(0.0, a + place * (b - a))

    names = (
        "forward_us", "backward_us", "optimizer_us", "launch_forward_us", "launch_backward_us",
        "launch_optimizer_us", "wrapper_us",
    )  # fmt: skip
    parts = {name: mixed(getattr(low, name), getattr(high, name)) for name in names}
    ratio = parts["backward_us"] / high.backward_us if high.backward_us else 0.0
    return Work(
        batch=batch,
        gradients=_stretched(high.gradients, ratio),
        spread_ratio=max(low.spread_ratio, high.spread_ratio),
        is_device_known=low.is_device_known and high.is_device_known,
        is_extrapolated=not 0 <= place <= 1,
        **parts,
    )


def _stretched(gradients: tuple[Gradient, ...], ratio: float) -> tuple[Gradient, ...]:
    return tuple(
        Gradient(name=g.name, num_elements=g.num_elements, ready_us=ratio * g.ready_us)
        for g in gradients
    )


def _spread(values: tuple[float, ...]) -> float:
    """Half the range of the blocks around their middle, as a share of it."""
    middle = median(values)
    return (max(values) - min(values)) / (2 * middle) if middle else 0.0
