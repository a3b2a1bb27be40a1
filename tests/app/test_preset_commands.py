"""`ringside presets …`: import, export, versions, differences and adaptation in the terminal."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from app import cli
from ringside.presets import Library, user_folder

CLONE = Path(cli.__file__).parents[1]
FSDP_1 = """\
distributed_type: FSDP
mixed_precision: bf16
num_processes: 8
main_process_port: 29501
fsdp_config:
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_backward_prefetch_policy: BACKWARD_POST
  fsdp_sharding_strategy: 1
"""


@pytest.fixture
def sent(tmp_path):
    """What a colleague sent."""
    path = tmp_path / "Team Config.yaml"
    path.write_text(FSDP_1)
    return str(path)


def documented(heading: str) -> set[str]:
    """The keys of a table of docs/cli-json.md."""
    text = (CLONE / "docs" / "cli-json.md").read_text()
    section = text.partition(f"## `{heading}`")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_an_import_says_what_becomes_of_every_key_and_saves_when_asked(ringside, sent):
    code, out, _ = ringside("presets", "import", sent)
    assert code == 0
    assert "fsdp_backward_prefetch_policy → fsdp_backward_prefetch" in out
    assert re.search(r"^4 +main_process_port +stripped", out, re.MULTILINE)
    assert "nothing saved; --save keeps it" in out
    assert not user_folder().exists()
    code, out, _ = ringside("presets", "import", sent, "--save")
    assert code == 0
    assert f"saved as team_config in {user_folder() / 'team_config.yaml'}" in out
    assert Library().get("team_config").file.accelerate.num_processes == 8
    code, _, err = ringside("presets", "import", sent, "--save")
    assert code == 2
    assert "team_config_2" in err


def test_import_as_json(ringside, sent):
    code, out, _ = ringside("presets", "import", sent, "--json", "--save", "--name", "ours")
    found = json.loads(out)
    assert code == 0
    assert set(found) == documented("ringside presets import FILE --json")
    assert (found["name"], found["kind"], found["refused"]) == ("ours", "accelerate", None)
    assert found["saved"] == str(user_folder() / "ours.yaml")
    assert set(found["changes"][0]) == {"key", "action", "note", "line"}


def test_what_is_refused_ends_with_2_and_one_sentence(ringside, tmp_path):
    path = tmp_path / "ds.yaml"
    path.write_text("distributed_type: DEEPSPEED\nnum_processes: 2\n")
    code, out, err = ringside("presets", "import", str(path), "--save")
    assert (code, out) == (2, "")
    assert err.startswith("ds.yaml: distributed_type DEEPSPEED is DeepSpeed")
    code, out, err = ringside("presets", "import", str(path), "--json", "--save")
    assert (code, err) == (2, "")
    found = json.loads(out)
    assert (found["preset"], found["saved"], found["kind"]) == (None, None, None)
    assert "DeepSpeed" in found["refused"]
    assert ringside("presets", "import", str(tmp_path / "gone.yaml"))[0] == 2


def test_pasted_text_is_read_from_the_standard_input(ringside, monkeypatch):
    stdin = SimpleNamespace(buffer=io.BytesIO(FSDP_1.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    code, out, _ = ringside("presets", "import", "-", "--json")
    assert (code, json.loads(out)["name"]) == (0, "pasted")


def test_the_team_folder_is_chosen_by_name(ringside, sent, tmp_path, monkeypatch):
    code, _, err = ringside("presets", "import", sent, "--team")
    assert code == 2
    assert "RINGSIDE_LIBRARY" in err
    monkeypatch.setenv("RINGSIDE_LIBRARY", f"hf://datasets/a/b:{tmp_path / 'team'}")
    assert ringside("presets", "import", sent, "--team")[0] == 0
    assert (tmp_path / "team" / "team_config.yaml").is_file()


def test_a_new_version_keeps_the_old_one(ringside, sent, tmp_path):
    ringside("presets", "import", sent, "--save", "--name", "ours")
    changed = tmp_path / "changed.yaml"
    changed.write_text(FSDP_1.replace("bf16", "fp16"))
    argv = ["presets", "import", str(changed), "--name", "ours"]
    assert ringside(*argv, "--save")[0] == 2
    assert ringside(*argv, "--replace")[0] == 0
    code, out, _ = ringside("presets", "history", "ours", "--diff")
    assert code == 0
    assert '    -  mixed_precision: "bf16"\n' in out
    assert '    +  mixed_precision: "fp16"\n' in out
    found = json.loads(ringside("presets", "history", "ours", "--json")[1])
    assert set(found[0]) == documented("ringside presets history NAME --json")
    assert [one["is_present"] for one in found] == [True, False]
    argv[2] = found[1]["path"]
    assert ringside(*argv, "--replace")[0] == 0  # back to the first
    assert Library().get("ours").file.accelerate.mixed_precision == "bf16"
    assert len(ringside("presets", "history", "ours")[1].splitlines()) == 3


def test_accelerates_own_file_comes_out_and_goes_in(ringside, tmp_path):
    out = tmp_path / "plain.yaml"
    code, said, err = ringside("presets", "export", "ddp_accum4", "--accelerate", "-o", str(out))
    assert (code, said) == (0, f"wrote {out}\n")
    assert "accumulation_steps = 4" in err
    config = yaml.safe_load(out.read_text())
    assert (config["distributed_type"], config["num_processes"]) == ("MULTI_GPU", 2)
    assert ringside("presets", "import", str(out), "--save")[0] == 0
    again = ringside("presets", "export", "plain", "--accelerate", "-o", "-")[1]
    assert again == out.read_text()
    assert ringside("presets", "export", "ddp", "--out", str(out))[0] == 2


def test_clone_and_rename(ringside):
    assert ringside("presets", "clone", "ddp", "mine")[0] == 0
    assert ringside("presets", "rename", "mine", "ours")[0] == 0
    assert Library().get("ours").origin == "yours"
    code, _, err = ringside("presets", "rename", "ddp", "x")
    assert code == 2
    assert "built in" in err


def test_delete_keeps_the_versions(ringside):
    ringside("presets", "clone", "ddp", "mine")
    code, out, _ = ringside("presets", "delete", "mine")
    assert code == 0
    assert out.startswith("deleted mine; its versions stay in ")
    assert "mine" not in Library().presets
    assert list((user_folder() / ".history" / "mine").glob("*.yaml"))
    code, _, err = ringside("presets", "delete", "ddp")
    assert code == 2
    assert "built in" in err


def test_a_difference_is_what_differs(ringside, make_spec, write_run):
    code, out, _ = ringside("presets", "diff", "ddp", "ddp_accum4")
    assert code == 0
    assert out.split() == ["ddp", "ddp_accum4", "training.accumulation_steps", "1", "4"]
    assert "training.optimizer" in ringside("presets", "diff", "ddp", "ddp_accum4", "--all")[1]
    assert "same settings" in ringside("presets", "diff", "ddp", "ddp")[1]
    write_run(make_spec("ddp", training={"compile": True}), "20260101-000000-swift-hare")
    found = json.loads(ringside("presets", "diff", "ddp", "swift", "--json")[1])
    assert {"name": "training.compile", "ddp": False, "swift": True} in found
    assert {"name": "accelerate.num_processes", "ddp": None, "swift": 2} in found
    code, _, err = ringside("presets", "diff", "ddp", "dpp")
    assert code == 2
    assert "Did you mean" in err


def test_ways_to_another_number_of_devices(ringside, sent):
    ringside("presets", "import", sent, "--save", "--name", "ours")
    argv = ["presets", "adapt", "ours", "--devices", "2", "--micro-batch", "32"]
    code, out, _ = ringside(*argv)
    assert code == 0
    assert "ringside run ours --processes 2 --batch 64 --set accumulation_steps=4" in out
    ways = json.loads(ringside(*argv, "--json")[1])
    assert set(ways[0]) == documented("ringside presets adapt NAME --json")
    assert [way["global_batch"] for way in ways] == [256, 256, 64]
    code, out, _ = ringside(*argv, "--choose", "resize", "--save-as", "two")
    assert code == 0
    assert "ringside run two --batch 256" in out
    assert Library().get("two").file.accelerate.num_processes == 2
    assert ringside(*argv, "--choose", "resize")[0] == 2
    code, _, err = ringside(*argv, "--choose", "stages", "--save-as", "x")
    assert code == 2
    assert "choose accumulate, resize, rescale" in err
    assert "nothing to adapt" in ringside("presets", "adapt", "single")[1]


def test_the_list_tells_origin_checksum_author_and_who_has_the_name(
    ringside, tmp_path, monkeypatch
):
    (tmp_path / "ddp.yaml").write_text(
        "about: {title: T, why: w, when: w, author: Lea}\n"
        "accelerate: {distributed_type: MULTI_GPU}\n"
    )
    monkeypatch.setenv("RINGSIDE_LIBRARY", str(tmp_path))
    _, out, _ = ringside("presets", "list")
    checksum = Library().get("team:ddp").checksum
    assert re.search(rf"^team:ddp +T +cuda, cpu +team +{checksum[:12]} +Lea$", out, re.MULTILINE)
    assert "team:ddp: the name ddp belongs to the built-in preset" in out
    assert f"team: {tmp_path}" in out
    rows = {row["name"]: row for row in json.loads(ringside("presets", "list", "--json")[1])}
    assert rows["team:ddp"]["shadowed_by"] == "ddp"
    assert (rows["team:ddp"]["checksum"], rows["team:ddp"]["author"]) == (checksum, "Lea")
    assert rows["ddp"]["shadowed_by"] is None


def test_fetch_without_a_hub_says_what_to_set(ringside):
    code, _, err = ringside("presets", "fetch")
    assert code == 2
    assert "hf://datasets/OWNER/NAME@REVISION" in err
