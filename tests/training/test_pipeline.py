"""Where a model is cut, what is left of it on a stage, and what travels between two."""

from __future__ import annotations

import itertools

import msgspec
import numpy as np
import pytest
import timm
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringside.errors import SetupError
from ringside.spec import RunSpec
from training.order import TrainingOrder
from training.pipeline.cut import HEAD, STEM, balance, cut, keep_only, measure, parts_of
from training.pipeline.stage import Stage
from training.pipeline.targets import TargetBatches

IMAGES = torch.Size((2, 3, 32, 32))


@pytest.fixture
def spec(make_spec) -> RunSpec:
    """Two stages, four micro-batches of 8 images, two of such batches a step."""
    settings = {"parallelism": "pipeline", "pipeline_micro_batches": 4, "accumulation_steps": 2}
    return make_spec("ddp", training=settings, micro_batch=16)


@given(
    work=st.lists(st.integers(1, 50), min_size=1, max_size=9),
    num_stages=st.integers(1, 9),
)
def test_no_other_cut_has_a_cheaper_costliest_stage(work, num_stages):
    """Against all cuts that there are."""
    num_stages = min(num_stages, len(work))
    found = balance(work, num_stages)
    assert [i for stage in found for i in stage] == list(range(len(work)))
    assert all(len(stage) > 0 for stage in found)
    costs = []
    for inner in itertools.combinations(range(1, len(work)), num_stages - 1):
        ends = (0, *inner, len(work))
        costs.append(max(sum(work[a:b]) for a, b in itertools.pairwise(ends)))
    assert max(sum(work[i] for i in stage) for stage in found) == min(costs)


def test_the_work_of_a_part_is_counted():
    """resnet18's stem: 7x7 over 3 channels to 64 at 16x16; its head: 512 to 10. A MAC is two."""
    model = timm.create_model("resnet18", num_classes=10)
    parts = parts_of(model, "resnet18")
    work, shapes = measure(model, parts, IMAGES)
    assert (parts[0], parts[-1], len(parts)) == (STEM, HEAD, 2 + 8)
    assert work[0] == 2 * 2 * 7 * 7 * 3 * 64 * 16 * 16
    # Two 3x3 convolutions over 64 channels at 8x8.
    assert work[1] == 2 * 2 * 2 * 3 * 3 * 64 * 64 * 8 * 8
    assert work[-1] == 2 * 2 * 512 * 10
    assert (shapes[0], shapes[-2], shapes[-1]) == ((2, 64, 8, 8), (2, 512, 1, 1), (2, 10))


def test_measuring_leaves_the_model_alone():
    model = timm.create_model("test_resnet")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    measure(model, parts_of(model, "test_resnet"), IMAGES)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert all(not module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("name", ["test_resnet", "resnet18", "seresnet18", "resnext26ts"])
@pytest.mark.parametrize("channels_last", [True, False])
def test_stages_one_after_the_other_are_the_model(name, channels_last):
    """Same logits to the last bit, and each weight on one stage under its own name."""
    try:
        whole = make(name, channels_last)
        found = cut(whole, name, 3, IMAGES)
    except SetupError:
        assert name == "resnext26ts"  # Of timm's ByobNet, with stages of another make.
        return
    models = [make(name, channels_last) for _ in found.stages]
    for number, model in enumerate(models):
        keep_only(model, found.stages, number)
    names = [key for model in models for key in model.state_dict()]
    assert sorted(names) == sorted(whole.state_dict())
    images = torch.randn(IMAGES, generator=torch.Generator().manual_seed(0))
    values = images
    for number, model in enumerate(models):
        stage = Stage(
            model, first=number == 0, last=number == 2, channels_last=channels_last,
            device=images.device, dtype=None,
        )  # fmt: skip
        values = stage(values)
        assert values.is_contiguous()
        if number < 2:
            assert values.shape == stage.travel_shape(found.borders[number])
    assert torch.equal(values, whole(images))


def make(name: str, channels_last: bool) -> torch.nn.Module:
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=5)
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return model.to(memory_format=layout)


@pytest.mark.parametrize(
    ("name", "num_stages", "message"),
    [
        ("vit_tiny_patch16_224", 2, "cuts models of timm's ResNet family.*is none"),
        ("convnext_atto", 2, "cuts models of timm's ResNet family.*is none"),
        ("test_resnet", 7, "has 6 parts.*7 stages; choose at most 6 processes"),
    ],
)
def test_what_cannot_be_cut_is_a_sentence(name, num_stages, message):
    with pytest.raises(SetupError, match=message):
        cut(timm.create_model(name), name, num_stages, IMAGES)


def test_all_stages_follow_the_order_of_the_one_that_reads(spec):
    """The second stage's targets belong to the first one's images; a step is one global batch."""
    first, second = (list(TrainingOrder(spec, 200, rank)) for rank in (0, 1))
    assert first == second
    assert {len(batch) for batch in first} == {spec.loader_batch} == {32}
    single = msgspec.structs.replace(
        spec,
        num_processes=1,
        accelerate=msgspec.structs.replace(spec.accelerate, distributed_type="NO", num_processes=1),
        training=msgspec.structs.replace(spec.training, parallelism="no", accumulation_steps=8),
    )
    alone = list(TrainingOrder(single, 200, 0))
    assert spec.micro_batch == single.micro_batch == 8
    assert list(itertools.chain(*first)) == list(itertools.chain(*alone))


def test_later_stages_get_targets_without_pixels():
    targets = np.array([[1, 0], [0, 1], [1, 1]], np.uint8)
    batches = TargetBatches(targets, [[(1, 2), (1, 0)], [(1, 1)]], torch.device("cpu"))
    for _epoch in range(2):
        (images, wanted, indices), (last, *_) = batches
        assert images.shape == (2, 3, 0, 0)
        assert wanted.tolist() == [[1.0, 1.0], [1.0, 0.0]]
        assert wanted.dtype == torch.float32
        assert indices.tolist() == [2, 0]
        assert len(last) == 1
