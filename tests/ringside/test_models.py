"""Names of models are checked before anything starts, without loading timm."""

from __future__ import annotations

import sys

import pytest

from ringside import models
from ringside.errors import SpecError
from ringside.models import SUGGESTED, check_model, is_resnet, mentions_class


@pytest.mark.parametrize(
    "name", ["resnet50", "resnet50.a1_in1k", "vit_base_patch16_224", *SUGGESTED]
)
def test_models_of_timm_are_known(name):
    assert check_model(name) == name


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("resnet51", "Did you mean 'resnet"),
        ("ResNet50", "Did you mean 'resnet50'"),
        ("", "resnet50"),
        ("xx", "resnet50"),
        ("../resnet50", "resnet50"),
    ],
)
def test_an_unknown_model_offers_another(name, part):
    with pytest.raises(SpecError, match="timm has no model") as caught:
        check_model(name)
    assert part in str(caught.value)
    assert len(str(caught.value)) < 120


def test_without_timm_any_name_passes(monkeypatch):
    """The page may run where the trainer is not installed; the trainer then has the last word."""
    monkeypatch.setitem(sys.modules, "timm", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    forget()
    try:
        assert check_model("anything") == "anything"
        assert is_resnet("resnet50") is None
        assert mentions_class("resnet50", ("Bottleneck",)) is None
    finally:
        forget()


def forget() -> None:
    models._sources.cache_clear()
    models._modules.cache_clear()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("resnet50", True), ("resnext50_32x4d.a1h_in1k", True), ("seresnet50", True),
        ("test_resnet", True), ("skresnet18", True), ("res2net50_26w_4s", True),
        ("vit_small_patch16_224", False), ("convnext_tiny", False), ("resnetv2_50", False),
        ("legacy_seresnet18", False), ("tresnet_m", False),
    ],
)  # fmt: skip
def test_the_family_is_told_as_the_model_itself_tells_it(name, expected):
    import timm
    import torch
    from timm.models.resnet import ResNet

    with torch.device("meta"):
        model = timm.create_model(name)
    assert is_resnet(name) == isinstance(model, ResNet) == expected
    blocks = {type(module).__name__ for module in model.modules()}
    assert mentions_class(name, sorted(blocks))


@pytest.mark.parametrize(
    "name", ["vit_small_patch16_224", "convnext_tiny", "deit_small_patch16_224"]
)
def test_what_a_module_and_its_imports_never_name_is_not_there(name):
    assert mentions_class(name, ("Bottleneck", "BasicBlock")) is False
    assert mentions_class("resnet50", ("Bottleneck", "BasicBlock"))
    assert mentions_class("deit_small_patch16_224", ("Block",))
