"""The step of each strategy, worked out by hand on a model of four gradients."""

from __future__ import annotations

import msgspec
import pytest

from ringside.estimate.links import Link
from ringside.estimate.sharded import block_of, units_of
from ringside.estimate.steps import NotEstimated, step_of
from ringside.estimate.work import work_at
from ringside.spec import AccelerateSettings, FsdpConfig
from tests.estimate.conftest import GRADIENTS

SGD = {"optimizer": "sgd"}


@pytest.fixture
def step(make_spec, make_description, make_sweep):
    """`step("ddp", us_per_mb=100, micro_batch=32, training={...})` in milliseconds."""

    def make(preset="ddp", *, us_per_mb=100.0, backend="gloo", num_ranks=2, **fields):
        fields.setdefault("micro_batch", 32)
        if preset == "fsdp":
            fields.setdefault("device", "cuda")
        fields["training"] = SGD | fields.get("training", {})
        spec = make_spec(preset, **fields)
        description = make_description()
        work = work_at(description, spec.micro_batch)
        link = Link(make_sweep(us_per_mb, num_ranks=num_ranks, backend=backend), spec.num_processes)
        return step_of(spec, description, work, link)

    return make


def test_ddp(step):
    """2, 30 and 8 MB at 1, 5 and 10 ms take 0.2, 3 and 0.8 ms: only the last one is seen."""
    found = step()
    assert found.exposed_us == pytest.approx(800)
    assert found.step_us == pytest.approx(16_800)
    assert found.communication_us == pytest.approx(4_000)
    assert found.num_bytes == 40_000_000


def test_ddp_over_a_slow_link(step):
    """At 1 ms a megabyte: 1-3, 5-35, 35-43; backward ends at 10."""
    assert step(us_per_mb=1_000).exposed_us == pytest.approx(33_000)


def test_an_explicit_bucket_size_sends_the_first_gradients_later(step):
    """With 1 MB limits: 2, 20, 10 and 8 MB at 1, 3, 5 and 10 ms; with 25: 32 MB at 5 ms, 8."""
    small = step(us_per_mb=1_000, training={"bucket_cap_mb": 1})
    assert small.exposed_us == pytest.approx(1_000 + 2_000 + 38_000 - 10_000)
    large = step(us_per_mb=1_000, training={"bucket_cap_mb": 25})
    assert large.exposed_us == pytest.approx(5_000 + 32_000 + 8_000 - 10_000)


def test_a_search_for_unused_parameters_keeps_the_first_layout(step):
    """In the model's order with limits of 15 MB: 8 + 10, 20, 2 MB, sent backwards."""
    settings = {"find_unused_parameters": True, "bucket_cap_mb": 15}
    found = step(us_per_mb=1_000, training=settings)
    assert found.exposed_us == pytest.approx(1_000 + 2_000 + 20_000 + 18_000 - 10_000)


def test_a_16_bit_hook_sends_half_and_casts(step):
    """At 1 ms a megabyte: 1-2, 5-20, 20-24. Casting costs 3/5 of the optimizer's 1 ms in all."""
    found = step(us_per_mb=1_000, training={"comm_hook": "bf16"})
    assert found.num_bytes == 20_000_000
    casts = 600 * (15 + 4) / 20
    assert found.exposed_us == pytest.approx(5_000 + 19_000 + casts - 10_000)


def test_accumulation_reduces_once(step):
    """Three micro-steps of 15 ms, then the step of `ddp`."""
    found = step(training={"accumulation_steps": 4})
    assert found.step_us == pytest.approx(3 * 15_000 + 16_800)


def test_one_process_accumulates_alone(step):
    found = step("single", training={"accumulation_steps": 2})
    assert found.step_us == pytest.approx(15_000 + 16_000)
    assert found.exposed_us == found.num_bytes == 0


def test_local_sgd_sends_weights_every_few_steps(step):
    """41 MB of weights and statistics take 4.1 ms, every 8 steps."""
    found = step(training={"local_sgd_steps": 8})
    assert found.step_us == pytest.approx(16_000 + 4_100 / 8)


def test_more_ranks_than_measured_scale_by_what_the_link_carries(step):
    """2 (n - 1) / n: 1 for two ranks, 1.5 for four."""
    found = step(us_per_mb=1_000, num_processes=4, micro_batch=32)
    assert found.exposed_us == pytest.approx(5_000 + 1.5 * 38_000 - 10_000)
    assert found.is_extrapolated


def test_an_endless_link_is_one_device(step):
    assert step(us_per_mb=1e-9).step_us == pytest.approx(16_000)
    assert step("fsdp", us_per_mb=1e-9).step_us == pytest.approx(16_000)


def test_nccl_slows_what_runs_beside_it(step):
    """3.2 ms of all-reduce are hidden; compute is 7 % slower for that long."""
    found = step(backend="nccl", precision="bf16")
    assert found.step_us == pytest.approx(16_800 + 0.07 * 3_200, rel=1e-3)


def test_in_fp32_nccl_stops_what_would_run_beside_it(step):
    """cuDNN's batch-norm needs the whole device: all 4 ms add to the step's 16."""
    found = step(backend="nccl")
    assert (found.step_us, found.exposed_us) == pytest.approx((20_000, 4_000))


def test_units_are_the_blocks_in_forward_order():
    units = units_of(GRADIENTS, 10_000)
    assert [unit.name for unit in units] == ["", "layer1.0", "layer1.1"]
    assert [unit.num_bytes for unit in units] == [10_000_000, 10_000_000, 20_000_000]
    assert [unit.share_ratio for unit in units] == pytest.approx([0.5, 0.2, 0.3])
    assert block_of("blocks.3.attn.qkv.weight") == "blocks.3"
    assert block_of("module.layer1.0.downsample.0.weight") == "layer1.0"


def test_fsdp_by_hand(step):
    """Gathers of 0.5, 0.5, 1 ms; forward 2.5, 1, 1.5 ms; backward 3, 2, 5; reductions as gathers.

    Forward: first gather 0.5; compute 0.5-3, second gathered at 1, 3-4, third at 4 (asked at 3),
    4-5.5. Backward: gather 1, compute 1-4, second gathered at 1.5, 4-6, its neighbour's reduction
    4-5, third asked at 4 and gathered before it at 4.5, so that reduction ends at 6.5; 6-11; last
    reduction 11.5.
    """
    found = step("fsdp")
    assert found.communication_us == pytest.approx(3 * 2_000)
    assert found.exposed_us == pytest.approx(500 + 1_000 + 500)
    assert found.is_rough


def test_in_fp32_nccl_stops_fsdp_too(step):
    """Its weights are contiguous and its convolutions channels_last: 6 ms add to the step's 16."""
    found = step("fsdp", backend="nccl")
    assert (found.step_us, found.exposed_us) == pytest.approx((22_000, 6_000))
    assert step("fsdp", backend="nccl", precision="bf16").exposed_us == pytest.approx(2_000)


def test_fsdp_costs_the_host_for_each_unit(make_spec, make_description, make_profile, make_sweep):
    description = make_description(make_profile(32, host_us=16_000.0, device_us=8_000.0))
    spec = make_spec("fsdp", micro_batch=32, training=SGD, device="cuda")
    link = Link(make_sweep(1.0), 2)
    found = step_of(spec, description, work_at(description, 32), link)
    assert found.step_us == pytest.approx(16_000 * (1 + 3 * 0.165))


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"training": {"comm_hook": "power_sgd"}}, "PowerSGD"),
        ({"training": {"sync_batchnorm": True}, "device": "cuda"}, "BatchNorm"),
        (
            {
                "preset": "single",
                "training": {"parallelism": "data_parallel"},
                "device": "cuda",
                "gpu_ids": (0, 1),
            },
            "DataParallel",
        ),
        ({"training": {"parallelism": "pipeline"}}, "pipeline"),
        ({"preset": "fsdp", "device": "cpu"}, "FSDP's units"),
    ],
)
def test_what_is_not_modelled_is_refused_in_a_sentence(step, fields, word):
    with pytest.raises(NotEstimated, match=word) as refused:
        step(**fields)
    assert "ringside run" in str(refused.value)


def test_offload_is_refused(make_spec, make_description, make_sweep):
    config = FsdpConfig(fsdp_offload_params=True)
    accelerate = AccelerateSettings(distributed_type="FSDP", num_processes=2, fsdp_config=config)
    whole = make_spec("fsdp", micro_batch=32, training=SGD)
    spec = msgspec.structs.replace(whole, accelerate=accelerate)
    description = make_description()
    with pytest.raises(NotEstimated, match="offload"):
        step_of(spec, description, work_at(description, 32), Link(make_sweep(), 2))


def test_nothing_is_said_without_a_sweep_or_gradients(make_spec, make_description, make_profile):
    spec = make_spec("ddp", micro_batch=32, training=SGD)
    description = make_description(make_profile(32, gradients=()))
    work = work_at(description, 32)
    with pytest.raises(NotEstimated, match="exchange gradients"):
        step_of(spec, description, work, None)
