"""Tell when Accelerate gets keys, words or strategies that an import does not know yet."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from pathlib import Path

from accelerate.commands.config.config_args import ClusterConfig, SageMakerConfig
from accelerate.commands.launch import launch_command_parser
from accelerate.utils import DistributedType, DynamoBackend, constants

from ringside.importing import keys
from ringside.importing.sharding import _OF_LANGUAGE_MODELS


def arguments(prefix: str) -> set[str]:
    found = {action.dest for action in launch_command_parser()._actions}
    return {name for name in found if name.startswith(prefix)}


def test_every_key_of_its_file_is_known():
    known = keys.TOP_LEVEL
    assert {field.name for field in dataclasses.fields(ClusterConfig)} - known == set()
    sagemaker = {field.name for field in dataclasses.fields(SageMakerConfig)}
    assert sagemaker >= keys.SAGEMAKER


def test_every_nested_key_is_known():
    assert arguments("fsdp_") - keys.FSDP == set()
    assert arguments("dynamo_") - keys.DYNAMO == set()


def test_every_strategy_is_run_or_refused_by_name():
    run = {"NO", "MULTI_GPU", "MULTI_CPU", "FSDP"}
    assert {one.value for one in DistributedType} == run | (
        keys.ENGINES.keys() & {one.value for one in DistributedType}
    )
    assert {"NO", "INDUCTOR"} <= {one.value for one in DynamoBackend}


def test_numbers_stand_for_the_same_words():
    assert list(keys.SHARDING_STRATEGIES) == constants.FSDP_SHARDING_STRATEGY
    assert list(keys.WRAP_POLICIES) == constants.FSDP_AUTO_WRAP_POLICY
    assert list(keys.STATE_DICT_TYPES) == constants.FSDP_STATE_DICT_TYPE


def test_no_class_of_an_image_model_is_taken_for_a_language_models():
    spec = importlib.util.find_spec("timm")
    assert spec is not None
    assert spec.origin is not None
    sources = (Path(spec.origin).parent / "models").glob("*.py")
    names = {
        name
        for path in sources
        for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(names) > 300
    assert sorted(name for name in names if _OF_LANGUAGE_MODELS.search(name)) == []
