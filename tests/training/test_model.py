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


def test_one_image_per_device_is_explained():
    norm = torch.nn.BatchNorm2d(3)
    with pytest.raises(ValueError, match="more than 1 value") as raised:
        norm(torch.zeros(1, 3, 1, 1))
    assert "at least two images per device" in describe(raised.value)
