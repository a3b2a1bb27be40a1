"""The cases of the field that an import has to get right, one by one."""

from __future__ import annotations

import json
import os

import pytest
import yaml

from ringside.importing import Import, import_text, name_from

DDP = "distributed_type: MULTI_GPU\nnum_processes: 2\n"
FSDP = "distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n"
POLICY = "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"


def read(text: str | bytes, **how) -> Import:
    data = text.encode() if isinstance(text, str) else text
    return import_text(data, **{"origin": "x.yaml", **how})


def actions(found: Import) -> dict[str, str]:
    return {change.key: change.action for change in found.changes}


def notes(found: Import) -> dict[str, str]:
    return {change.key: change.note for change in found.changes}


@pytest.mark.parametrize("extra", ["ipex_config: {ipex: false}\n", "use_mps_device: true\n"])
def test_a1_keys_that_accelerate_has_forgotten_are_dropped_and_the_rest_is_kept(extra):
    found = read("distributed_type: MULTI_CPU\nnum_processes: 2\n" + extra)
    assert found.refused is None
    assert found.preset.file.accelerate.num_processes == 2
    key = next(key for key in actions(found) if extra.startswith(key.partition(".")[0]))
    assert actions(found)[key] == "dropped"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("no", "no"), ("No", "no"), ("NO", "no"), ("off", "no"), ("'no'", "no"), ('"NO"', "no"),
        ("false", "no"), ("null", "no"), ("", "no"), ("fp32", "no"), ("FP16", "fp16"),
        ("float16", "fp16"), ("16", "fp16"), ("bfloat16", "bf16"), ("2", "bf16"), ("0", "no"),
    ],
)  # fmt: skip
def test_a2_every_spelling_of_a_precision_means_what_people_mean(written, meant):
    found = read(f"{DDP}mixed_precision: {written}\n")
    assert found.preset.file.accelerate.mixed_precision == meant
    assert (actions(found)["mixed_precision"] == "kept") == (written == "'no'")
    assert yaml.safe_load(found.text)["accelerate"]["mixed_precision"] == meant


@pytest.mark.parametrize("written", ["fp61", "true", "int8", "[fp16]", "{a: 1}", "7"])
def test_a2_what_is_no_precision_is_refused_with_the_choices(written):
    assert "choose one of no, fp16, bf16" in read(f"{DDP}mixed_precision: {written}\n").refused


@pytest.mark.parametrize(
    ("text", "reshards"),
    [
        ("  fsdp_sharding_strategy: FULL_SHARD\n", True),
        ("  fsdp_sharding_strategy: 1\n", True),
        ("  fsdp_sharding_strategy: '2'\n", False),
        ("  fsdp_sharding_strategy: SHARD_GRAD_OP\n", False),
        ("  fsdp_sharding_strategy: hybrid_shard\n", True),
        ("  fsdp_reshard_after_forward: SHARD_GRAD_OP\n", False),
        ("  fsdp_version: 2\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n", False),
        ("  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n", False),
        ("  fsdp_version: 2\n  fsdp_reshard_after_forward: 'true'\n", True),
        ("  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n"
         "  fsdp_sharding_strategy: FULL_SHARD\n", False),
        ("  fsdp_reshard_after_forward: FULL_SHARD\n  fsdp_sharding_strategy: 2\n", False),
    ],
)  # fmt: skip
def test_a4_the_two_versions_of_fsdp_say_the_same(text, reshards):
    config = read(FSDP + POLICY + text).preset.file.accelerate.fsdp_config
    assert config.fsdp_reshard_after_forward is reshards


@pytest.mark.parametrize(
    ("text", "is_warned"),
    [
        ("  fsdp_reshard_after_forward: SHARD_GRAD_OP\n", True),
        ("  fsdp_reshard_after_forward: FULL_SHARD\n", False),
        ("  fsdp_reshard_after_forward: SHARD_GRAD_OP\n  fsdp_sharding_strategy: 2\n", False),
        ("  fsdp_version: 2\n  fsdp_reshard_after_forward: false\n", False),
    ],
)
def test_a4_a_strategy_that_accelerate_itself_would_not_read(text, is_warned):
    """`accelerate config` writes it for version 1, and `accelerate launch` (1.15) then takes
    FULL_SHARD all the same, the default of --fsdp_sharding_strategy."""
    found = read(FSDP + POLICY + text)
    said = [warning for warning in found.warnings if "passes over fsdp_reshard" in warning]
    assert len(said) == is_warned


def test_a4_a_renamed_key_is_followed_and_its_loss_is_said():
    found = read(FSDP + POLICY + "  fsdp_backward_prefetch_policy: BACKWARD_POST\n")
    old, new = "fsdp_config.fsdp_backward_prefetch_policy", "fsdp_config.fsdp_backward_prefetch"
    assert notes(found)[old] == "fsdp_backward_prefetch_policy → fsdp_backward_prefetch"
    assert (actions(found)[old], actions(found)[new]) == ("mapped", "dropped")
    assert "BACKWARD_POST" in notes(found)[new]
    assert found.changes[-1].line == 5


def test_a4_a_nested_typo_gets_the_nearest_name():
    found = read(FSDP + POLICY + "  fsdp_ofload_params: true\n  zzz: 1\n")
    said = notes(found)["fsdp_config.fsdp_ofload_params"]
    assert said.endswith("Did you mean fsdp_offload_params?")
    assert "Did you mean" not in notes(found)["fsdp_config.fsdp_zzz"]
    assert found.preset.file.accelerate.fsdp_config.fsdp_offload_params is False
    assert any("fsdp_ofload_params" in warning for warning in found.warnings)


def test_a6_accumulation_on_top_goes_where_it_works():
    """Accelerate refuses this key; in the preset it counts, and its own file leaves it out."""
    found = read(f"{DDP}gradient_accumulation_steps: 4\n")
    assert found.preset.file.training.accumulation_steps == 4
    assert actions(found)["gradient_accumulation_steps"] == "translated"


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (b"\xef\xbb\xbf" + DDP.encode(), None),
        (DDP.replace("\n", "\r\n").encode(), None),
        (b"a:\n\tb: 1\n", ["line 2", "tab"]),
        (DDP.encode("utf-16"), ["UTF-16"]),
        (b"", ["empty"]),
        (b"# only words\n", ["empty"]),
        (b"base: &a {b: 1}\ndistributed_type: 'NO'\nc: *a\n", ["line 1", "anchors"]),
        (DDP.encode() + b"num_processes: 3\n", ["line 3", "line 2", "num_processes"]),
        (b"a: !!python/object/apply:os.system ['touch marker']\n", ["line 1", "tag"]),
        (b"a: &x [1,1]\nb: &y [*x,*x]\nc: [*y,*y]\n", ["anchors"]),
        (b"\x89PNG\r\n\x1a\n\x00\x00", ["not UTF-8"]),
        (b"ab\x00cd", ["x.yaml"]),
        ("größe: 1\n".encode("latin-1"), ["not UTF-8"]),
        (b"- 1\n- 2\n", ["list of keys"]),
        (b"just words", ["list of keys"]),
        (b"{" * 50_000, ["deeper"]),
        (b"#" * 50_000_000, ["1 MiB"]),
        (b"num_processes: 2\n", ["distributed_type is missing"]),
        (b"{}", ["none of the keys"]),
        (b"colour: red\n", ["none of the keys (colour)"]),
        (b"distributed_type: DDP\n", ["Did you mean MULTI_GPU?"]),
        (b"distributed_type: FSDP\nfsdp_config: [1]\n", ["fsdp_config must hold keys"]),
        (b"distributed_type: MULTI_GPU\nnum_processes: 0\n", ["at least 1"]),
        (b"distributed_type: MULTI_GPU\nnum_processes: '{{N}}'\n", ["at least 1"]),
        (b"distributed_type: MULTI_GPU\nnum_processes: 99999999999999999999\n", ["too large"]),
    ],
)  # fmt: skip
def test_a8_a_damaged_file_is_one_sentence(data, parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = read(data)
    if parts is None:
        assert found.preset.file.accelerate.num_processes == 2
    else:
        assert [part for part in parts if part not in found.refused] == []
        assert "\n" not in found.refused
    assert os.listdir(tmp_path) == []  # nothing was executed


@pytest.mark.parametrize(
    "line",
    [
        "env: hf_AbCdEfGhIjKlMnOpQrSt",
        "# token: hf_AbCdEfGhIjKlMnOpQrSt",
        "tpu_env: [AKIAIOSFODNN7EXAMPLE]",
        "main_process_ip: https://me:secret1@host",
        "wandb_api_key: abc",
        "commands: {db_password: x}",
        "tpu_env: [{aws_secret_access_key: y}]",
        "x: ghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "hub_token: 12345",
    ],
)
def test_a_secret_is_refused_and_never_repeated(line):
    found = read(f"{DDP}{line}\n")
    assert "secret" in found.refused
    for word in ("hf_Ab", "AKIA", "secret1", "abc.", "ghp_", "12345"):
        assert word not in found.refused


@pytest.mark.parametrize("line", ["hub_token: null", "use_auth_token: false", "tokenizer: fast"])
def test_a_word_like_token_alone_is_no_secret(line):
    assert read(f"{DDP}{line}\n").refused is None


def test_a_preset_of_ours_passes_with_its_bytes():
    text = (
        "# why\nformat: 1\nabout: {title: T, why: w, when: w, author: Lea}\n"
        "accelerate: {distributed_type: MULTI_GPU}\n"
    )
    found = read(text)
    assert (found.kind, found.text) == ("preset", text.encode())
    assert found.preset.about.author == "Lea"
    assert "secret" in read(text + "environment: {NCCL_TOKEN: abc}\n").refused
    assert "unknown key" in read(text.replace("author", "authorr")).refused


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Accelerate Config.yaml", "accelerate_config"), ("a/b/DDP.YML", "ddp"),
        ("配置.yaml", "imported"),
        ("../../x.yaml", "x"), (".hidden.yaml", "hidden"), ("x" * 200, "x" * 64), ("", "imported"),
    ],
)  # fmt: skip
def test_a_file_gives_a_name_that_is_one(text, name):
    assert name_from(text) == name


def test_notes_are_said_in_the_language_of_who_asks_and_the_file_is_english():
    from ringside.words import speaking

    with speaking("zh"):
        found = read(f"{DDP}gpu_ids: 0,1\n")
    assert found.changes[-1].note == "只属于某一台机器的信息"
    assert found.text.isascii()


def test_contradictions_of_ids_and_numbers_are_named():
    assert "gpu_ids 0,1" in read(f"{DDP.replace('2', '4')}gpu_ids: 0,1\n").warnings[0]
    assert read(f"{DDP}gpu_ids: 0,1\n").warnings == ()


def test_the_outcome_is_plain_data():
    from app.commands.importing import report

    found = json.loads(json.dumps(report(read(DDP))))
    assert set(found) == {"name", "kind", "preset", "changes", "warnings", "refused"}
    assert found["changes"][0] == {
        "key": "distributed_type", "action": "kept", "note": "", "line": 1,
    }  # fmt: skip
