"""Hand-made models and links, whose steps can be worked out on paper."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ringside.events import WindowTimed
from ringside.measurements import Crowded, Description, Gradient, Point, Series, StepProfile, Sweep

MB = 1_000_000


def gradient(name: str, num_bytes: int, ready_us: float) -> Gradient:
    return Gradient(name=name, num_elements=num_bytes // 4, ready_us=ready_us)


GRADIENTS = (
    gradient("fc.weight", 2 * MB, 1_000),
    gradient("layer1.1.conv.weight", 20 * MB, 3_000),
    gradient("layer1.0.conv.weight", 10 * MB, 5_000),
    gradient("conv1.weight", 8 * MB, 10_000),
)
"""A backward pass of 10 ms. DDP's buckets: 2 MB at 1 ms, 30 MB at 5 ms, 8 MB at 10 ms."""


@pytest.fixture
def make_profile() -> Callable[..., StepProfile]:
    """A step of 5 + 10 + 1 ms at 32 images; everything grows with the batch."""

    def make(batch: int = 32, **changes) -> StepProfile:
        ratio = batch / 32
        fields = {
            "batch": batch,
            "step_us": (16_000 * ratio,),
            "forward_us": 5_000 * ratio,
            "backward_us": 10_000 * ratio,
            "optimizer_us": 1_000 * ratio,
            "host_us": 4_000.0,
            "gradients": tuple(
                Gradient(name=g.name, num_elements=g.num_elements, ready_us=ratio * g.ready_us)
                for g in GRADIENTS
            ),
            "peak_bytes": 200 * MB + 10 * MB * batch,
        }
        return StepProfile(**(fields | changes))

    return make


@pytest.fixture
def make_description(make_profile) -> Callable[..., Description]:
    """Batches 16 and 32 of the model above, which two processes do as fast side by side."""

    def make(*profiles: StepProfile, **changes) -> Description:
        fields = {
            "t": 0.0, "key": "k", "model": "resnet50", "num_classes": 100, "image_size": 32,
            "precision": "no", "compile": False, "channels_last": True, "optimizer": "sgd",
            "device_name": "GPU", "num_parameters": 10 * MB, "parameter_bytes": 40 * MB,
            "buffer_bytes": 1 * MB, "optimizer_state_bytes": 40 * MB,
            "profiles": profiles or (make_profile(16), make_profile(32)),
            "crowded": (Crowded(num_processes=2, batch=32, step_us=(16_000.0,)),),
        }  # fmt: skip
        return Description(**(fields | changes))

    return make


@pytest.fixture
def make_sweep() -> Callable[..., Sweep]:
    """A link that takes `us_per_mb` for each megabyte of an all-reduce, half for the others."""

    def make(us_per_mb: float = 100.0, *, num_ranks: int = 2, backend: str = "gloo") -> Sweep:
        sizes = [2**exponent for exponent in range(14, 30)]
        factors = {"all_reduce": 1.0, "all_gather": 0.5, "reduce_scatter": 0.5}
        return Sweep(
            t=0.0, key="k", device_name="GPU", num_ranks=num_ranks,
            series=tuple(
                Series(
                    operation=operation, dtype=dtype, backend=backend, num_ranks=num_ranks,
                    points=tuple(_point(size, factor * us_per_mb) for size in sizes),
                )
                for operation, factor in factors.items()
                for dtype in ("fp32", "bf16")
            ),
        )  # fmt: skip

    return make


def _point(num_bytes: int, us_per_mb: float) -> Point:
    us = num_bytes / MB * us_per_mb
    return Point(num_bytes=num_bytes, median_us=us, p90_us=us, repeats=10)


@pytest.fixture
def make_windows() -> Callable[..., list[WindowTimed]]:
    """Two windows an epoch; those of the first are three times as long."""

    def make(
        step_ms: float, *, data_ms: float = 0.0, epochs: int = 2, profiled: bool = False
    ) -> list[WindowTimed]:
        return [
            WindowTimed(
                epoch=epoch, step=step, num_steps=10, samples_per_s=1.0, train_loss=0.5,
                learning_rate=0.1, step_ms=step_ms * (3 if epoch == 1 else 1) + data_ms,
                data_ms=data_ms, forward_ms=1.0, backward_ms=1.0, optimizer_ms=1.0,
                step_ms_min=1.0, data_ms_min=0.0, memory_bytes=600_000_000, profiled=profiled,
            )
            for epoch in range(1, epochs + 1)
            for step in (10, 20)
        ]  # fmt: skip

    return make
