"""Names of models are checked before anything starts, without loading timm."""

from __future__ import annotations

import sys

import pytest

from ringside.errors import SpecError
from ringside.models import SUGGESTED, check_model, model_names


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
    model_names.cache_clear()
    try:
        assert check_model("anything") == "anything"
    finally:
        model_names.cache_clear()
