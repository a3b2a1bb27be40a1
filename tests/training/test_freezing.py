"""A frozen backbone comes out of training as it went in, statistics included."""

from __future__ import annotations

import pytest
import timm
import torch

from ringside.errors import SetupError
from training.freezing import classifier_of, freeze_backbone, held_layers
from training.model import make_model, make_optimizer


def test_only_the_head_changes(make_trainer):
    trainer = make_trainer(micro_batch=128, freeze="backbone", weight_decay=0.5)
    model = trainer.engine.plain
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainer.train_epoch(1)
    trainer.engine.train_mode()  # As after an evaluation.
    trainer.train_epoch(2)
    after = model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"fc.weight", "fc.bias"}


def test_what_is_observed(make_trainer):
    whole, frozen = (
        make_trainer().engine.observe(),
        make_trainer(freeze="backbone").engine.observe(),
    )
    assert (whole.freeze, frozen.freeze) == ("no", "backbone")
    assert whole.num_trainable_parameters == whole.num_parameters == frozen.num_parameters
    # 96 features to 16 labels, and their biases.
    assert frozen.num_trainable_parameters == 16 * 96 + 16


def test_layers_that_train_keep_their_own_statistics(make_spec):
    """A frozen backbone holds all its BatchNorm layers; a model that trains holds none."""
    model = make_model(make_spec("single", model="test_resnet"), 7)
    assert held_layers(model) == []
    freeze_backbone(model)
    norms = [layer for layer in model.modules() if isinstance(layer, torch.nn.BatchNorm2d)]
    assert held_layers(model) == norms != []


@pytest.mark.parametrize("name", ["resnet18", "convnext_atto", "vit_tiny_patch16_224"])
def test_the_classifier_is_what_timm_calls_it(name):
    model = timm.create_model(name, num_classes=7)
    freeze_backbone(model)
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert trained == 7 * model.num_features + 7


def test_a_distilled_transformer_has_two_heads():
    model = timm.create_model("deit_tiny_distilled_patch16_224", num_classes=7)
    assert len(classifier_of(model)) == 2


def test_a_model_without_a_head_is_refused():
    with pytest.raises(SetupError, match="leaves nothing to train"):
        freeze_backbone(timm.create_model("test_resnet", num_classes=0))


@pytest.mark.parametrize("freeze", ["no", "backbone"])
def test_norms_and_biases_are_not_decayed(make_spec, freeze):
    spec = make_spec("single", model="test_resnet", training={"freeze": freeze})
    model = make_model(spec, 7)
    groups = make_optimizer(spec, model).param_groups
    decay = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert len(decay) == len(trained)
    for name, parameter in trained.items():
        is_matrix = name.endswith("weight") and parameter.dim() > 1
        assert decay[id(parameter)] == (spec.training.weight_decay if is_matrix else 0)
