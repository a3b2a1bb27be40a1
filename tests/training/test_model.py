"""Every model that the page suggests takes the default picture size, and is what it says."""

from __future__ import annotations

import pytest
import torch
from accelerate.state import AcceleratorState

from ringside.errors import SetupError
from ringside.models import SUGGESTED
from training.engine import Engine
from training.failure import describe
from training.model import make_model, make_optimizer
from training.observation import is_synchronised


@pytest.mark.parametrize("name", SUGGESTED)
def test_a_suggested_model_takes_the_default_size(name, make_spec):
    model = make_model(make_spec("single", model=name), 7).eval()
    with torch.no_grad():
        assert model(torch.zeros(2, 3, 32, 32)).shape == (2, 7)


def test_a_size_that_the_model_cannot_take_is_a_sentence(make_spec):
    AcceleratorState._reset_state(reset_partial_state=True)
    spec = make_spec("single", model="vit_small_patch16_224", image_size=8)
    engine, model = Engine(spec), make_model(spec, 7)
    engine.prepare(model, make_optimizer(spec, model))
    with pytest.raises(SetupError, match=r"vit_small_patch16_224 cannot take images of 8 px"):
        engine.observe()


@pytest.mark.parametrize("name", ["test_resnet", "test_efficientnet"])
def test_synchronised_batchnorm_is_the_same_function(name, make_spec):
    """timm's BatchNormAct2d holds an activation, which torch's own conversion would drop."""
    on_gpus = {"model": name, "device": "cuda", "gpu_ids": (0, 1)}
    plain = make_model(make_spec("ddp", **on_gpus), 7).eval()
    wished = make_spec("ddp", training={"sync_batchnorm": True}, **on_gpus)
    synchronised = make_model(wished, 7).eval()
    assert is_synchronised(synchronised)
    assert not is_synchronised(plain)
    assert list(synchronised.state_dict()) == list(plain.state_dict())
    images = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(synchronised(images), plain(images))


def test_a_model_without_batchnorm_has_nothing_to_synchronise(make_spec):
    spec = make_spec(
        "ddp", model="convnext_atto", device="cuda", gpu_ids=(0, 1),
        training={"sync_batchnorm": True},
    )  # fmt: skip
    with pytest.raises(SetupError, match="convnext_atto has no BatchNorm"):
        make_model(spec, 7)


def test_one_image_per_device_is_explained():
    norm = torch.nn.BatchNorm2d(3)
    with pytest.raises(ValueError, match="more than 1 value") as raised:
        norm(torch.zeros(1, 3, 1, 1))
    assert "at least two images per device" in describe(raised.value)
