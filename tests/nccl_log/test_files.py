"""Which files are read, and the one sentence for those that cannot be."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from app import cli
from app.commands.nccl import log_json
from ringside.errors import RingsideError
from ringside.nccl_log import read_nccl_log
from tests.nccl_log.conftest import said, started

KEYS = {
    "sentence", "is_handicap", "next_step", "notes", "version", "cuda", "num_ranks", "num_hosts",
    "hosts", "transports", "worst_transport", "asymmetric", "edges", "rings", "trees", "channels",
    "p2p_channels", "nvls_channels", "network", "nics", "patterns", "paths", "env", "variables",
    "choices", "predictions", "operations", "warnings", "init_s", "num_lines", "num_torn",
}  # fmt: skip
LOG = started(0, 2) + said("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC")
BACK = started(1, 2, bus="2000") + said("Channel 00/0 : 1[1] -> 0[0] via P2P/IPC", pid=101)


def test_one_file_per_rank_plain_and_gzipped(tmp_path):
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "b").write_bytes(gzip.compress(BACK.encode()))
    log = read_nccl_log([tmp_path / "a.log", tmp_path / "b", tmp_path / "a.log"])
    assert len(log.edges) == 2
    assert log.num_lines == 4


@pytest.mark.parametrize("name", ["nccl/host.12.log", "nccl/host.12.log.gz", "nccl.rank0.log",
                                  "job_nccl.log.gz", "console.log"])  # fmt: skip
def test_a_run_directory_and_other_folders(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(LOG.encode()) if name.endswith("gz") else LOG.encode())
    assert len(read_nccl_log([tmp_path]).edges) == 1


def test_a_run_s_own_logs_come_before_its_console(tmp_path):
    (tmp_path / "nccl").mkdir()
    (tmp_path / "nccl" / "a.log").write_text(LOG)
    (tmp_path / "console.log").write_text(LOG + BACK)
    assert len(read_nccl_log([tmp_path]).edges) == 1


def test_a_gzip_file_that_was_cut(tmp_path):
    whole = gzip.compress("".join(said(f"Using network N{i}") for i in range(999)).encode())
    (tmp_path / "cut.log.gz").write_bytes(whole[: len(whole) // 2])
    log = read_nccl_log([tmp_path / "cut.log.gz"])
    assert log.num_lines > 0
    assert log.notes == ("cut.log.gz ends in the middle; what stands before is used.",)


def test_a_file_without_nccl_among_others_is_named(tmp_path):
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "b.log").write_text("hello\n")
    (tmp_path / "c.log").touch()
    log = read_nccl_log(sorted(tmp_path.iterdir()))
    assert log.notes == ("b.log holds no line of NCCL.", "c.log is empty.")


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda path: None, "There is no file"),
        (lambda path: path.touch(), "is empty; set NCCL_DEBUG=INFO"),
        (lambda path: path.write_text("a poem\n"), "is no log of NCCL"),
        (lambda path: path.write_bytes(bytes(range(256)) * 50), "is no log of NCCL"),
        (lambda path: path.write_bytes(b"\x1f\x8b\x08 no gzip"), "is no log of NCCL"),
        (lambda path: path.write_text(LOG.splitlines()[0]), "is whole"),
        (lambda path: path.mkdir(), "holds no log of NCCL"),
    ],
)
def test_one_sentence_for_what_cannot_be_read(tmp_path, make, part, capsys):
    path = tmp_path / "x"
    make(path)
    with pytest.raises(RingsideError, match=re.escape(part)) as raised:
        read_nccl_log([path])
    assert str(path) in str(raised.value)
    with pytest.raises(SystemExit) as left:
        cli.main(["nccl", str(path)])
    out, err = capsys.readouterr()
    assert (left.value.code, out, err) == (2, "", f"{raised.value}\n")


def test_no_file_at_all():
    with pytest.raises(RingsideError, match="No log was named"):
        read_nccl_log([])


def test_the_keys_of_json_are_frozen_and_documented(tmp_path, capsys):
    (tmp_path / "a.log").write_text(LOG + BACK)
    with pytest.raises(SystemExit):
        cli.main(["nccl", str(tmp_path / "a.log"), "--json"])
    report = json.loads(capsys.readouterr().out)
    text = (Path(cli.__file__).parents[1] / "docs" / "cli-json.md").read_text()
    section = text.partition("## `ringside nccl FILE --json`")[2].partition("\n## ")[0]
    assert set(report) == KEYS == set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    assert report["transports"] == {"P2P/IPC": 2}
    assert report["edges"][0]["src"] == 0
    assert (report["version"], report["channels"], report["init_s"]) == (None, None, None)


def test_the_keys_do_not_depend_on_what_is_known(tmp_path):
    (tmp_path / "a.log").write_text(said("hello"))
    report = log_json(read_nccl_log([tmp_path / "a.log"]))
    assert set(report) == KEYS
    assert (report["transports"], report["num_ranks"], report["network"]) == ({}, None, None)


def test_what_people_read(tmp_path, capsys):
    (tmp_path / "a.log").write_text(
        LOG + BACK + said("NCCL_P2P_LEVEL set by environment to SYS", "evil \x1b[31m"),
    )
    with pytest.raises(SystemExit) as left:
        cli.main(["nccl", str(tmp_path / "a.log")])
    out = capsys.readouterr().out
    assert left.value.code == 0
    assert out.startswith("The GPUs talk directly (P2P/IPC, 1 channel).\n")
    assert "   2 P2P/IPC\n" in out
    assert "leftover: NCCL_P2P_LEVEL=SYS: The longest path" in out


def test_control_characters_do_not_reach_the_terminal(tmp_path, capsys):
    (tmp_path / "a.log").write_bytes(b"node1:1:1 [0] a.cc:1 NCCL WARN boo\x07\x08 \x9b31m\n")
    with pytest.raises(SystemExit):
        cli.main(["nccl", str(tmp_path / "a.log")])
    assert set(capsys.readouterr().out) & set("\x07\x08\x1b\x9b") == set()


def test_of_an_endless_log_the_beginning_is_read(tmp_path, monkeypatch):
    from ringside.nccl_log import files

    line = "node:1:2 [0] NCCL INFO NCCL version 2.28.9+cuda13.0\n"
    (tmp_path / "job.log").write_text(line + "node:1:2 [0] NCCL INFO AllReduce: opCount 1\n" * 50)
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    log = read_nccl_log([tmp_path / "job.log"])
    assert log.version == "2.28.9"
    assert log.num_lines < 51
    assert "Of job.log the first 0 MiB are read." in log.notes
