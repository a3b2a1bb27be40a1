"""What an experiment really launches."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from ringside.measurements.derived import at_batch, one_device, spec_of_arm
from ringside.measurements.store import key_of_model
from ringside.spec import RunSpec


@pytest.mark.parametrize(
    ("preset", "training"),
    [
        ("ddp", {}), ("ddp", {"accumulation_steps": 4}), ("ddp", {"comm_hook": "bf16"}),
        ("ddp", {"static_graph": True, "bucket_cap_mb": 5}), ("ddp", {"local_sgd_steps": 2}),
        ("ddp", {"parallelism": "pipeline"}), ("fsdp", {"reduce_dtype": "bf16"}), ("single", {}),
    ],
)  # fmt: skip
def test_one_device_does_the_same_step(
    make_spec: Callable[..., RunSpec], preset: str, training: dict[str, object]
) -> None:
    spec = make_spec(preset, training=training, environment={"OMP_NUM_THREADS": "1"})
    one = one_device(spec)
    assert (one.strategy, one.num_processes, one.num_devices) == ("single", 1, 1)
    assert (one.micro_batch, one.num_micro_steps) == (spec.micro_batch, spec.num_micro_steps)
    assert (one.channels_last, one.environment) == (spec.channels_last, spec.environment)
    assert key_of_model(one) == key_of_model(spec)
    assert one_device(one) == one


def test_a_description_has_one_micro_step(make_spec: Callable[..., RunSpec]) -> None:
    spec = make_spec("ddp", micro_batch=64, training={"accumulation_steps": 4})
    described = at_batch(spec, 32)
    assert (described.micro_batch, described.global_batch) == (32, 32)
    assert key_of_model(described) == key_of_model(spec)


def test_arms_take_nothing_up(make_spec: Callable[..., RunSpec]) -> None:
    spec = make_spec("ddp", weights="/w", request_id="r", profile_steps=5)
    arm = spec_of_arm(spec, "many_synthetic")
    assert (arm.weights, arm.request_id, arm.profile_steps) == (None, None, 0)
    assert msgspec.structs.replace(arm, weights="/w", request_id="r", profile_steps=5) == spec
    assert spec_of_arm(spec, "one") == msgspec.structs.replace(one_device(arm), weights=None)
