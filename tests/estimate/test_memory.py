"""Peak memory: by hand, and against what ResNet-50 took on two H200s."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringside.estimate.memory import line, memory_parts

LAB = Path(__file__).parents[3] / "shared" / "lab" / "h200x2"
GIB = 2**30
MB = 1_000_000
RESNET_BYTES = 94_851_728


def lab_peak(name: str) -> int:
    path = LAB / f"{name}.json"
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    return round(GIB * json.loads(path.read_text())["peak_gib"])


@pytest.mark.parametrize("transport", ["nvlink", "socket"])
@pytest.mark.parametrize(("batch", "name"), [(64, "ddp"), (256, "ddp_bs256")])
def test_ddp_from_one_device(make_spec, make_description, make_profile, transport, batch, name):
    one = {64: lab_peak("one/ddp"), 256: lab_peak("one/ddp_bs256")}
    description = make_description(
        *(make_profile(size, peak_bytes=peak, gradients=()) for size, peak in one.items()),
        parameter_bytes=RESNET_BYTES, optimizer_state_bytes=RESNET_BYTES, buffer_bytes=213_000,
    )  # fmt: skip
    found = memory_parts(make_spec("ddp", micro_batch=batch), description)
    assert sum(found.values()) == pytest.approx(lab_peak(f"{transport}/{name}"), rel=0.01)


def test_parts_add_up_to_the_peak_of_one_process(make_spec, make_description):
    """200 MB and 10 MB an image: weights 40, momentum 40, buffers 1, 119 are something else."""
    assert line(make_description()) == pytest.approx((200 * MB, 10 * MB))
    found = memory_parts(make_spec("single", micro_batch=32), make_description())
    assert found == {
        "parameters": 40 * MB, "buffers": MB, "optimizer": 40 * MB, "activations": 320 * MB,
        "other": 119 * MB,
    }  # fmt: skip


def test_what_strategies_add_and_share(make_spec, make_description):
    def parts(preset, **training):
        spec = make_spec(preset, micro_batch=32, training=training)
        return memory_parts(spec, make_description())

    assert parts("ddp")["buckets"] == parts("ddp")["gradients"] == 40 * MB
    assert "gradients" not in parts("ddp", gradient_as_bucket_view=True)
    assert parts("single", accumulation_steps=2)["gradients"] == 40 * MB
    sharded = parts("fsdp")
    assert (sharded["parameters"], sharded["optimizer"], sharded["gradients"]) == (
        20 * MB, 20 * MB, 20 * MB,
    )  # fmt: skip
    # Two units of 20 and 10 MB, each with its gradients.
    assert sharded["gathered"] == 60 * MB


@pytest.mark.parametrize(("batch", "is_known"), [(7, False), (8, True), (64, True), (65, False)])
def test_memory_is_said_as_far_as_the_step(make_spec, make_description, batch, is_known):
    """Up to twice outside the measured 16 and 32 images."""
    found = memory_parts(make_spec("single", micro_batch=batch), make_description())
    assert (found is not None) == is_known
    if found:
        assert sum(found.values()) == (200 + 10 * batch) * MB


def test_one_batch_or_a_cpu_says_nothing(make_spec, make_description, make_profile):
    spec = make_spec("single", micro_batch=32)
    assert memory_parts(spec, make_description(make_profile(32))) is None
    without = make_profile(16, peak_bytes=None), make_profile(32, peak_bytes=None)
    assert memory_parts(spec, make_description(*without)) is None
