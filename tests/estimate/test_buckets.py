"""The layout of DDP's buckets, against DDP itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import timm
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from ringside.estimate.buckets import MIB, assign, bucket_sizes, layout, limits_of, unused_layout
from ringside.estimate.sharded import block_of
from ringside.measurements import Gradient


@pytest.fixture
def one_rank_group() -> Iterator[None]:
    """DDP lays out its buckets for one rank as for many."""
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def ready_order(model: torch.nn.Module, images: torch.Tensor) -> tuple[Gradient, ...]:
    """The gradients in the order in which a backward pass completes them."""
    order: list[Gradient] = []
    handles = [
        parameter.register_post_accumulate_grad_hook(
            lambda p, name=name: order.append(
                Gradient(name=name, num_elements=p.numel(), ready_us=float(len(order)))
            )
        )
        for name, parameter in model.named_parameters()
    ]
    model(images).sum().backward()
    for handle in handles:
        handle.remove()
    return tuple(order)


@pytest.fixture(scope="module")
def resnet() -> tuple[torch.nn.Module, torch.Tensor, tuple[Gradient, ...]]:
    """A ResNet-50 of 100 classes, images, and its gradients in the order of their readiness."""
    model = timm.create_model("resnet50", num_classes=100)
    images = torch.randn(2, 3, 32, 32)
    return model, images, ready_order(model, images)


def ddp_layout(model: torch.nn.Module, images: torch.Tensor, **arguments) -> list[int]:
    """The buckets after the first step in bytes, as DDP logs them."""
    wrapped = DistributedDataParallel(model, **arguments)
    for _ in range(3):
        wrapped(images).sum().backward()
    said = wrapped._get_ddp_logging_data()
    return [int(size) for size in said["rebuilt_bucket_sizes"].split(", ")]


@pytest.mark.usefixtures("one_rank_group")
@pytest.mark.parametrize(
    ("bucket_cap_mb", "megabytes"),
    [
        (None, [5.03, 27.29, 26.26, 26.55, 9.72]),
        (25, [32.32, 26.26, 26.55, 9.72]),
    ],
)
def test_layout_is_that_of_ddp(resnet, bucket_cap_mb, megabytes):
    """The first figures are also those of two H200s over NCCL (torch 2.11)."""
    model, images, gradients = resnet
    arguments = {} if bucket_cap_mb is None else {"bucket_cap_mb": bucket_cap_mb}
    found = [bucket.num_bytes for bucket in layout(gradients, bucket_cap_mb)]
    assert found == ddp_layout(model, images, **arguments)
    assert [round(size / 1e6, 2) for size in found] == megabytes


@pytest.mark.usefixtures("one_rank_group")
@pytest.mark.parametrize("bucket_cap_mb", [None, 10])
def test_a_search_for_unused_parameters_keeps_the_first_layout(resnet, bucket_cap_mb):
    """The shortcuts of blocks are the neighbours that stand elsewhere in the model."""
    model, _, gradients = resnet
    arguments = {} if bucket_cap_mb is None else {"bucket_cap_mb": bucket_cap_mb}
    wrapped = DistributedDataParallel(model, find_unused_parameters=True, **arguments)
    sizes = wrapped._get_ddp_logging_data()["bucket_sizes"]
    found = [bucket.num_bytes for bucket in unused_layout(gradients, bucket_cap_mb)]
    assert sorted(found) == sorted(int(size) for size in sizes.split(", "))


@pytest.mark.parametrize(
    ("bucket_cap_mb", "megabytes"),
    [(None, [5.03, 27.29, 28.36, 26.29, 7.89]), (25, [32.32, 28.36, 26.29, 7.89])],
)
def test_another_order_makes_other_buckets(bucket_cap_mb, megabytes):
    """ResNet-50 where the shortcut of a block is done after the block (torch 2.13, gloo)."""
    named = list(timm.create_model("resnet50", num_classes=100).named_parameters())[::-1]
    ordered: list[tuple[str, torch.nn.Parameter]] = []
    for _, block in itertools.groupby(named, key=lambda item: block_of(item[0]) or item[0]):
        ordered += sorted(block, key=lambda item: "downsample" in item[0])
    gradients = [
        Gradient(name=name, num_elements=parameter.numel(), ready_us=float(index))
        for index, (name, parameter) in enumerate(ordered)
    ]
    found = [bucket.num_bytes for bucket in layout(gradients, bucket_cap_mb)]
    assert [round(size / 1e6, 2) for size in found] == megabytes


@given(
    st.lists(st.integers(1, 40 * MIB), min_size=1, max_size=60),
    st.one_of(st.none(), st.integers(1, 50)),
)
def test_every_gradient_is_in_one_bucket_that_is_full_but_for_the_last(sizes, cap):
    limits = limits_of(cap)
    buckets = assign(sizes, limits)
    assert [index for bucket in buckets for index in bucket] == list(range(len(sizes)))
    for number, bucket in enumerate(buckets):
        limit = limits[min(number, len(limits) - 1)]
        assert sum(sizes[index] for index in bucket[:-1]) < limit
        if number < len(buckets) - 1:
            assert sum(sizes[index] for index in bucket) >= limit


def test_a_bucket_is_ready_when_its_last_gradient_is():
    gradients = [
        Gradient(name="a", num_elements=MIB // 4, ready_us=3.0),
        Gradient(name="b", num_elements=10, ready_us=7.0),
        Gradient(name="c", num_elements=10, ready_us=5.0),
    ]
    assert [bucket.ready_us for bucket in layout(gradients)] == [3.0, 7.0]
    assert layout([]) == []


def test_a_16_bit_hook_sends_half_of_each_bucket(make_spec):
    gradients = [Gradient(name="a", num_elements=MIB, ready_us=1.0)] * 2
    assert bucket_sizes(make_spec("ddp"), gradients) == (4 * MIB, 4 * MIB)
    halved = make_spec("ddp", training={"comm_hook": "bf16", "bucket_cap_mb": 25})
    assert bucket_sizes(halved, gradients) == (4 * MIB,)
