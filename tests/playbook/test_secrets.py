"""Nothing that tells a person or a machine apart leaves in a playbook."""

from __future__ import annotations

import gzip
import json
from importlib import util
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.nccl_log import read_text
from ringside.playbook.content import encode_playbook
from ringside.playbook.readme import readme
from ringside.playbook.redaction import Redactor, here, is_allowed
from ringside.trace import read_traces

_found = util.spec_from_file_location("planted", Path(__file__).with_name("conftest.py"))
assert _found is not None
assert _found.loader is not None
planted = util.module_from_spec(_found)
_found.loader.exec_module(planted)


def plain(name: str, data: bytes) -> str:
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode()


def test_no_planted_name_path_address_or_token_is_in_any_file(draft):
    files = draft.files | {
        "playbook.json": encode_playbook(draft.playbook),
        "README.md": readme(draft.playbook).encode(),
    }
    texts = {name: plain(name, data).lower() for name, data in files.items()}
    assert [
        (mark, name) for mark in planted.MARKS for name, text in texts.items()
        if mark.lower() in text or mark.lower() in name.lower()
    ] == []  # fmt: skip
    assert [name for name in files if "console" in name or "notes" in name] == []
    assert "call" not in " ".join(texts)


def test_what_is_needed_to_see_the_run_is_still_there(draft):
    run = f"runs/{planted.RUN}"
    spec = json.loads(draft.files[f"{run}/spec.json"])
    assert spec["data"]["path"] == "photos"
    assert spec["weights"] == "start.safetensors"
    assert spec["environment"] == {"NCCL_P2P_DISABLE": "1"}
    events = draft.files[f"{run}/events.jsonl"].decode().splitlines()
    started = json.loads(events[0])
    assert started["observed"]["environment"] == {
        "NCCL_P2P_DISABLE": "1", "NCCL_SOCKET_IFNAME": "eth0",
    }  # fmt: skip
    assert [json.loads(line)["kind"] for line in events].count("epoch_trained") == 3
    log = draft.files[f"{run}/nccl/host1.895.log"].decode()
    found = read_text(log)
    assert (found.hosts, found.network) == (("host1",), "Socket")
    assert found.environment == {"NCCL_P2P_DISABLE": "1"}
    assert [nic.name for nic in found.nics] == ["eth0"]


def test_a_cleared_trace_says_the_same_to_its_reader(draft, story, tmp_path):
    for name in ("rank0.json.gz", "rank1.json.gz"):
        (tmp_path / name).write_bytes(draft.files[f"runs/{planted.RUN}/trace/{name}"])
    before, _ = read_traces([story[1].trace])
    after, _ = read_traces([tmp_path])
    for one, other in zip(before, after, strict=True):
        assert (one.rank, one.world_size, one.steps) == (other.rank, other.world_size, other.steps)
        assert one.work.start.tolist() == other.work.start.tolist()
        assert one.work.launch.tolist() == other.work.launch.tolist()


def test_what_was_left_out_is_said(draft):
    said = {one.path.rpartition("/")[2]: one.why for one in draft.playbook.left_out}
    assert "anybody" in said["console.log"]
    assert said["notes.json"]


@pytest.mark.parametrize(("text", "cleared"), [
    ("/home/carol/a b", "a b"),
    ("in /home/carol", "in ~"),
    ("~/x/y.txt", "y.txt"),
    ("images/s and P2P/CUMEM, 3/4", "images/s and P2P/CUMEM, 3/4"),
    ("https://docs.nvidia.com/nccl/env.html", "https://docs.nvidia.com/nccl/env.html"),
    ("https://me:pw@hub.example/x", "https://hub.example/x"),
    ("driver 580.159.04, 2.28.9, 10.1.2.3:80", "driver 580.159.04, 2.28.9, 192.0.2.1:80"),
    ("fe80::1ff:fe23:4567:890a%eth0", "2001:db8::1"),
    ("12:34:56 and 0000:60:00.0", "12:34:56 and 0000:60:00.0"),
    ("mac 0a:1b:2c:3d:4e:5f", "mac 00:00:5e:00:53:00"),
    ("password=hunter22", "password=[removed]"),
    ('{"api_key": "abcdef"}', '{"api_key": "[removed]"}'),
    ("Authorization: Bearer abc.def", "Authorization: Bearer [removed]"),
    ("AKIAIOSFODNN7EXAMPLE", "[removed]"),
    ("GPU-0c835055-145d-0299-b20d-99d1f58da15b", "[removed]"),
    ("a@b.example", "[removed]"),
    ("TRAIN01 and train01.lab", "host1 and host1"),
    ("dave, dave_ddp, davenport", "user, user_ddp, davenport"),
])  # fmt: skip
def test_texts(text, cleared):
    redactor = Redactor(hosts=["train01.lab"], users=["dave", "root", "vm"])
    assert redactor.text(text) == cleared
    assert redactor.text(cleared) == cleared


def test_a_secret_with_a_slash_in_it_is_still_one(monkeypatch):
    """Keys in base64, as those of AWS, have slashes; paths in such variables begin with one."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp")
    redactor = Redactor(**here())
    assert redactor.text("said wJalrXUtnFEMI/K7MDENG/bPxRfiCY twice") == "said [removed] twice"
    assert redactor.text("/tmp/somebody/photos") == "photos"


ALPHABET = "ab1.:/@~-_ =\"',\n"


@given(st.text(ALPHABET, max_size=60), st.sampled_from(["token=", "/home/x/", "10.0.0.1", "::1"]))
def test_clearing_twice_changes_nothing(text, part):
    redactor = Redactor(hosts=["ab"], users=["baa"], paths=["/a/b"])
    once = redactor.text(text + part + text)
    assert redactor.text(once) == once


@pytest.mark.parametrize("name", [
    "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "NCCL_AUTH_TOKEN", "PATH", "HOME", "NCCL_TOPO_FILE",
    "NCCL_CONF_FILE", "NCCL_NET_PLUGIN", "MASTER_ADDR", "NCCL_COMM_ID", "LD_PRELOAD",
])  # fmt: skip
def test_variables_that_stay_behind(name):
    assert not is_allowed(name)


@pytest.mark.parametrize("name", ["NCCL_P2P_DISABLE", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME"])
def test_variables_that_are_taken_along(name):
    assert is_allowed(name)


def test_words_of_a_closed_list_stay_whatever_the_user_is_called(draft, root, story, monkeypatch):
    """A user named as a strategy, a severity or a state must not make a playbook unreadable."""
    from ringside.playbook.content import decode_playbook
    from ringside.playbook.gathering import gather

    for name in ("note", "completed", "multi_label"):
        monkeypatch.setenv("USER", name)
        found: Any = gather(root, story)
        assert decode_playbook(encode_playbook(found.playbook), "x") == found.playbook
