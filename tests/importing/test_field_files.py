"""Files as they are met in the field, rebuilt feature by feature: what becomes of each.

The features are those of public repositories (docs/imports.md lists them all); Accelerate's own
reader is the reference for what a file means where it takes it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from accelerate.commands.config.config_args import ClusterConfig

from ringside import yaml_text
from ringside.importing import Import, import_text, leaves
from ringside.presets import accelerate_text, parse_preset

FILES = sorted((Path(__file__).parent / "files").glob("*.yaml"))
REFUSED = {8, 9, 14, 15, 17, 18, 22, 23, 29, 33, 34, 35, 46, 48, 53, 54, 57, 58, 59, 61, 62}
PRECISIONS = {"": "no", "None": "no", "False": "no"}


def number(path: Path) -> int:
    return int(path.name[:2])


def read(path: Path) -> Import:
    return import_text(path.read_bytes(), origin=path.name)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_a_preset_or_a_sentence(path):
    found = read(path)
    assert (found.refused is not None) == (number(path) in REFUSED)
    assert (found.preset is None) == (number(path) in REFUSED)
    if found.refused is not None:
        assert found.refused.startswith(path.name)
        assert "\n" not in found.refused
        assert found.refused.endswith(".")


@pytest.mark.parametrize(
    "path", [p for p in FILES if number(p) not in REFUSED], ids=lambda p: p.stem
)
class TestImported:
    def test_every_key_has_its_line(self, path):
        """Nothing is left out in silence, and the line is the one in the file."""
        found = read(path)
        document = yaml_text.load_text(path.read_bytes(), origin=path.name)
        said = {change.key: change for change in found.changes}
        assert {key for key, _ in leaves("", document.value)} <= said.keys()
        for change in found.changes:
            assert change.action == "kept" or change.note
        for key, _ in leaves("", document.value):
            assert said[key].line == document.lines[tuple(key.split("."))]

    def test_the_saved_file_is_the_preset(self, path):
        found = read(path)
        assert parse_preset(found.text, name=found.name, origin="file").file == found.preset.file

    def test_accelerate_reads_the_same(self, path, tmp_path):
        """What Accelerate 1.15 makes of the original, where it takes it, is what comes out."""
        found = read(path)
        written = tmp_path / "out.yaml"
        written.write_text(accelerate_text(found.preset))
        ours = ClusterConfig.from_yaml_file(str(written))
        try:
            theirs = ClusterConfig.from_yaml_file(str(path))
        except (ValueError, TypeError):
            assert number(path) in {4, 7, 30, 60, 66}, "Accelerate refuses it"
            return
        kind = str(getattr(theirs.distributed_type, "value", theirs.distributed_type) or "NO")
        kind = {"MULTI_CPU": "MULTI_GPU"}.get(kind, kind)
        assert ours.distributed_type.value == ("MULTI_GPU" if number(path) == 68 else kind)
        precision = str(theirs.mixed_precision)
        assert ours.mixed_precision == PRECISIONS.get(precision, precision)
        if kind != "NO" and theirs.num_processes > 0:
            assert ours.num_processes == theirs.num_processes // theirs.num_machines
        for key in ("fsdp_offload_params", "fsdp_state_dict_type"):
            if key in theirs.fsdp_config and theirs.fsdp_config[key] != "LOCAL_STATE_DICT":
                assert ours.fsdp_config[key] == theirs.fsdp_config[key]

    def test_out_and_in_again_changes_nothing(self, path):
        first = accelerate_text(read(path).preset)
        again = import_text(first.encode(), origin="again.yaml")
        assert again.refused is None
        assert again.warnings == () or {"1 process" in w for w in again.warnings} == {True}
        assert accelerate_text(again.preset) == first


@pytest.mark.parametrize(
    ("which", "word"),
    [
        (8, "fp8"), (9, "Megatron-LM"), (14, "Intel XPU"), (15, "DeepSpeed"), (17, "dp_replicate"),
        (18, "cp_size is 8"), (57, "TPU"), (58, "Apple MPS"), (59, "Ascend"), (61, "SageMaker"),
        (62, "timm"),
    ],
)  # fmt: skip
def test_what_is_another_engines_is_said(which, word):
    assert word in read(FILES[which - 1]).refused


@pytest.mark.parametrize(
    ("which", "words"),
    [
        (4, ["invalid_key", "another_invalid_key"]),
        (6, ["4 machines"]),
        (19, ["without fsdp_config"]),
        (24, ["NO with 8 processes starts one process"]),
        (32, ["NO_WRAP"]),
        (52, ["MULTI_GPU with 1 process"]),
        (60, ["Apple's GPU"]),
        (67, ["fsdp_sharding_strategy", "fsdp_reshard_after_forward"]),
        (68, ["NO_SHARD"]),
    ],
)
def test_contradictions_and_losses_are_warnings(which, words):
    said = " ".join(read(FILES[which - 1]).warnings)
    assert [word for word in words if word not in said] == []


def test_sharding_of_either_version_becomes_the_second():
    def of(which: int):
        return read(FILES[which - 1]).preset.file

    assert of(43).accelerate.fsdp_config.fsdp_reshard_after_forward is False
    assert of(40).accelerate.fsdp_config.fsdp_reshard_after_forward is True
    assert of(67).accelerate.fsdp_config.fsdp_reshard_after_forward is False
    assert of(40).accelerate.fsdp_config.fsdp_auto_wrap_policy == "TRANSFORMER_BASED_WRAP"
    assert of(21).accelerate.fsdp_config.fsdp_state_dict_type == "FULL_STATE_DICT"
    blocks = "fsdp_transformer_layer_cls_to_wrap"
    assert getattr(of(21).accelerate.fsdp_config, blocks) == "Bottleneck"
    assert getattr(of(27).accelerate.fsdp_config, blocks) == "Bottleneck,BasicBlock"
    assert of(68).accelerate.fsdp_config is None
    assert (of(13).training.reduce_dtype, of(16).training.reduce_dtype) == ("bf16", "fp32")


def test_what_stands_outside_accelerates_part_is_translated():
    def of(which: int):
        return read(FILES[which - 1]).preset.file

    assert of(66).training.accumulation_steps == 4
    assert (of(64).training.compile, of(64).training.compile_mode) == (True, "reduce-overhead")
    assert of(65).accelerate.mixed_precision == "fp16"
    assert [of(which).about.devices for which in (6, 25, 31, 11)] == [
        ("cpu",), ("cuda",), ("cuda",), ("cuda", "cpu"),
    ]  # fmt: skip
    assert [of(which).accelerate.num_processes for which in (6, 12, 16, 24, 50)] == [
        4, None, None, None, 8,
    ]  # fmt: skip


def test_facts_of_a_machine_stay_behind():
    found = read(FILES[3 - 1])
    stripped = {change.key for change in found.changes if change.action == "stripped"}
    assert {"main_process_ip", "tpu_name", "command_file", "gpu_ids", "machine_rank"} <= stripped
    body = b"".join(line for line in found.text.splitlines(True) if not line.startswith(b"#"))
    assert b"a-pod" not in found.text
    assert b"command" not in body
