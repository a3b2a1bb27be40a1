"""Whatever stands in a file: a preset or a sentence, quickly, and the same when it comes back."""

from __future__ import annotations

import string
import time
from typing import get_args

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringside import yaml_text
from ringside.importing import Action, import_text, keys, leaves
from ringside.importing.outcome import shown
from ringside.presets import Library, accelerate_text, parse_preset

LIBRARY = list(Library())
NAMES = sorted(keys.TOP_LEVEL | keys.FSDP | keys.DYNAMO | {"about", "accelerate", "training"})
WORDS = [
    "NO", "MULTI_GPU", "FSDP", "MULTI_CPU", "bf16", "fp16", "no", "INDUCTOR", "FULL_SHARD", "true",
    "TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "default", "all", "-1", "",
]  # fmt: skip

scalars = st.one_of(
    st.sampled_from(WORDS), st.none(), st.booleans(), st.integers(-2, 9),
    st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=12),
)  # fmt: skip
names = st.sampled_from(NAMES) | st.text(string.ascii_letters + "_.\n: é", min_size=1, max_size=9)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
configurations = st.dictionaries(names, values, max_size=8).flatmap(
    lambda body: st.sampled_from(["NO", "MULTI_GPU", "FSDP", "MULTI_CPU"]).map(
        lambda kind: {**body, "distributed_type": kind}
    )
)


def assert_sound(data: bytes) -> None:
    found = import_text(data, origin="x.yaml")
    assert (found.preset is None) == (found.refused is not None)
    if found.refused is not None:
        assert found.refused.isprintable()
        return
    assert parse_preset(found.text, name=found.name, origin="file").file == found.preset.file
    assert {change.action for change in found.changes} <= set(get_args(Action))
    if found.kind == "accelerate":
        said = {change.key for change in found.changes}
        written = yaml_text.load_text(data, origin="x.yaml").value
        assert [key for key, _ in leaves("", written) if not is_covered(key, said)] == []


def is_covered(key: str, said: set[str]) -> bool:
    """Whether the key, or the block that it stands in, has its line."""
    parts = key.split(".")
    return any(shown(".".join(parts[:end])) in said for end in range(1, len(parts) + 1))


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(configurations)
def test_any_configuration(value):
    assert_sound(yaml.safe_dump(value, allow_unicode=True).encode())


@settings(max_examples=40)
@given(values)
def test_any_object(value):
    assert_sound(yaml.safe_dump(value, allow_unicode=True).encode())


@settings(max_examples=80)
@given(
    st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode(errors="replace"))
)
def test_any_bytes(data):
    assert_sound(data)


@pytest.mark.parametrize(
    "text", ["- a\n" * 250_000, "a: " + "x " * 500_000, '"' + "\\u00e9" * 170_000 + '"',
             "distributed_type: 'NO'\n" + "".join(f"k{i}: 1\n" for i in range(60_000))],
)  # fmt: skip
def test_the_largest_files_take_seconds_at_most(text):
    begin = time.perf_counter()
    assert import_text(text.encode()[: yaml_text.MAX_BYTES], origin="x.yaml").refused
    assert time.perf_counter() - begin < 15.0  # about 2 s on an idle core


@pytest.mark.parametrize("preset", LIBRARY, ids=lambda preset: preset.name)
def test_built_in_presets_come_back_the_same(preset):
    """As Accelerate's file, and as the preset itself byte for byte."""
    text = accelerate_text(preset)
    again = import_text(text.encode(), origin=f"{preset.name}.yaml", name=preset.name)
    assert again.warnings == ()
    assert accelerate_text(again.preset) == text
    accelerate = preset.file.accelerate
    back = again.preset.file.accelerate
    assert (back.distributed_type, back.mixed_precision, back.fsdp_config) == (
        accelerate.distributed_type, accelerate.mixed_precision, accelerate.fsdp_config,
    )  # fmt: skip
    with open(preset.path, "rb") as stream:
        own = stream.read()
    assert import_text(own, origin="x.yaml").text == own


@settings(max_examples=60)
@given(
    kind=st.sampled_from(["NO", "MULTI_GPU", "FSDP"]),
    precision=st.sampled_from(["no", "fp16", "bf16"]),
    count=st.none() | st.integers(1, 512),
    config=st.fixed_dictionaries(
        {},
        optional={
            "fsdp_reshard_after_forward": st.booleans(),
            "fsdp_offload_params": st.booleans(),
            "fsdp_auto_wrap_policy": st.sampled_from(keys.WRAP_POLICIES),
            "fsdp_transformer_layer_cls_to_wrap": st.sampled_from(["Block", "A,B", "BasicBlock"]),
            "fsdp_state_dict_type": st.sampled_from(["SHARDED_STATE_DICT", "FULL_STATE_DICT"]),
        },
    ),
)
def test_generated_presets_come_back_the_same(kind, precision, count, config):
    accelerate = {"distributed_type": kind, "mixed_precision": precision}
    if kind != "NO" and count:
        accelerate["num_processes"] = count
    if kind == "FSDP":
        accelerate["fsdp_config"] = config
    tree = {"about": {"title": "T", "why": "w", "when": "w"}, "accelerate": accelerate}
    text = accelerate_text(parse_preset(yaml_text.dump(tree), name="x", origin="file"))
    again = import_text(text.encode(), origin="x.yaml")
    assert accelerate_text(again.preset) == text
