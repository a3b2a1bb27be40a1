"""What one device does in a step of a model: the input of an estimate."""

from __future__ import annotations

import msgspec

from ringside.spec import Precision


class Gradient(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter's gradient; `ready_us` after the start of the backward pass, on the device."""

    name: str
    num_elements: int
    ready_us: float


class StepProfile(msgspec.Struct, frozen=True, kw_only=True):
    """A step of one process at one per-device batch, free running, no profiler, no reduction.

    `step_us` holds one figure for each block of steps. Parts are medians over blocks by device
    events; they need not add up to the step, and where the host launches slower than the device
    works they are at the host's pace. `host_us` is the time the host needs to launch a step.
    `gradients` are in the order in which they become ready.
    `peak_bytes` of the device's allocator, None on a CPU. `wrapped_step_us`: the same step inside
    DistributedDataParallel of one process: what the wrapper costs without any traffic.
    `device_us` is the device's own work of a step whose launches came ahead of it, which is less
    than the step where the host sets the pace; None: not measured.
    """

    batch: int
    step_us: tuple[float, ...]
    forward_us: float
    backward_us: float
    optimizer_us: float
    host_us: float | None = None
    gradients: tuple[Gradient, ...] = ()
    peak_bytes: int | None = None
    wrapped_step_us: tuple[float, ...] = ()
    device_us: float | None = None


class Crowded(msgspec.Struct, frozen=True, kw_only=True):
    """The step at a batch while `num_processes` do it side by side and exchange nothing.

    `step_us`: the slowest process, one figure for each block of steps.
    """

    num_processes: int
    batch: int
    step_us: tuple[float, ...]


class Description(msgspec.Struct, frozen=True, kw_only=True):
    """A model on one device, at two per-device batches or more (smallest first).

    `problems`: a sentence for each part that could not be measured. `num_cores`: those that the
    process could use.
    """

    format: int = 1
    t: float
    key: str
    model: str
    num_classes: int
    image_size: int
    precision: Precision
    compile: bool
    compile_mode: str = "default"
    channels_last: bool
    optimizer: str
    device_name: str
    num_parameters: int
    parameter_bytes: int
    buffer_bytes: int
    running_bytes: int | None = None
    optimizer_state_bytes: int
    profiles: tuple[StepProfile, ...]
    versions: dict[str, str] = {}
    problems: tuple[str, ...] = ()
    crowded: tuple[Crowded, ...] = ()
    num_cores: int | None = None
