"""Logs of real runs on two H200s with known causes: NVLink, shared memory, TCP sockets."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ringside.nccl_log import judge, read_nccl_log, ring_edges, rings, transports, worst_ring_edge

LAB = Path(__file__).parents[3] / "shared" / "lab" / "h200x2"
pytestmark = pytest.mark.skipif(not LAB.is_dir(), reason=f"the lab's logs are not at {LAB}")

FOLDERS = ("nvlink", "shm", "socket")


def files(folder: str) -> list[Path]:
    return [LAB / folder / f"nccl.rank{rank}.log.gz" for rank in (0, 1)]


def text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_facts_that_all_three_share(folder):
    log = read_nccl_log(files(folder))
    assert (log.version, log.cuda, log.hosts) == ("2.28.9", "13.0", ("vm",))
    assert (log.num_ranks, log.num_hosts, log.network) == (2, 1, "Socket")
    assert [(nic.network, nic.index, nic.name) for nic in log.nics] == [("Socket", 0, "eth0")]
    assert (log.warnings, log.num_torn, log.notes) == ((), 0, ())
    assert log.num_lines == sum(len(text(path).splitlines()) for path in files(folder))
    (group,) = log.communicators
    assert [(rank.rank, rank.device, rank.bus_id) for rank in group.ranks] == [
        (0, 0, "60"), (1, 1, "70"),
    ]  # fmt: skip
    assert log.missing_infiniband == "No device found."


@pytest.mark.parametrize(
    ("folder", "edges", "channels", "p2p_channels", "init_s"),
    [
        ("nvlink", {"P2P/CUMEM": 48}, 24, 32, 0.56),
        ("shm", {"SHM/direct/direct": 8}, 4, 4, 0.31),
        ("socket", {"NET/Socket": 4}, 2, 2, 0.40),
    ],
)
def test_edges_channels_and_start(folder, edges, channels, p2p_channels, init_s):
    """Two directions a channel; an edge over sockets is printed by both ends and counted once."""
    log = read_nccl_log(files(folder))
    assert transports(log.edges) == edges
    assert ring_edges(log) == list(log.edges)
    assert {(edge.src, edge.dst) for edge in log.edges} == {(0, 1), (1, 0)}
    assert {edge.channel for edge in log.edges} == set(range(channels))
    assert (log.num_channels, log.num_p2p_channels) == (channels, p2p_channels)
    assert rings(log) == {channel: [0, 1] for channel in range(channels)}
    assert len(log.trees) == 2 * channels
    assert log.init_s == init_s


@pytest.mark.parametrize(
    ("folder", "disabled"),
    [("nvlink", ()), ("shm", ("P2P",)), ("socket", ("P2P", "SHM"))],
)
def test_the_variables_that_nccl_obeyed(folder, disabled):
    expected = {f"NCCL_{what}_DISABLE": "1" for what in disabled} | {"NCCL_NVLS_ENABLE": "0"}
    assert read_nccl_log(files(folder)).environment == expected


@pytest.mark.parametrize(
    ("folder", "paths", "bandwidths"),
    [("nvlink", {"NVL"}, {30.0, 60.0}), ("shm", {"PHB"}, {20.0, 40.0}), ("socket", {"LOC"}, None)],
)
def test_patterns(folder, paths, bandwidths):
    log = read_nccl_log(files(folder))
    assert {pattern.path_inside for pattern in log.patterns} == paths
    if bandwidths:
        assert {one.bandwidth_inside_gb_per_s for one in log.patterns} == bandwidths


def test_paths_between_the_gpus():
    paths = {(path.src, path.dst): path for path in read_nccl_log(files("nvlink")).paths}
    direct = paths["GPU/0-60", "GPU/0-70"]
    assert (direct.hops, direct.bandwidth_gb_per_s, direct.kind) == (2, 370.8, "NVL")
    assert paths["GPU/0-60", "NET/0-0"].kind == "PHB"


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_choices_are_those_that_plain_counting_finds(folder):
    log = read_nccl_log(files(folder))
    pattern = re.compile(r"INFO (\w+): (\d+) Bytes -> Algo (\w+) proto (\w+)")
    counted = Counter(pattern.findall(text(files(folder)[0])))
    assert counted
    found = {
        (one.function, str(one.size_bytes), one.algorithm, one.protocol): one.calls
        for one in log.choices
    }
    assert found == dict(counted)
    assert {one.predicted_us for one in log.choices} == {None}


def test_nccls_own_model():
    """All algorithms that it may use, with the right columns; zeros stand for: not here."""
    log = read_nccl_log(files("nvlink"))
    table = {
        (one.function, one.algorithm, one.protocol): (one.latency_us, one.bandwidth_gb_per_s)
        for one in log.predictions
    }
    assert table["AllReduce", "TREE", "LL"] == (8.0, 61.1)
    assert table["AllReduce", "RING", "SIMPLE"] == (15.2, 360.0)
    assert table["AllGather", "RING", "LL128"] == (15.9, 662.4)
    assert {algorithm for _, algorithm, _ in table} == {"TREE", "RING"}
    assert len(table) == 5 * 3 + 3


@pytest.mark.parametrize(
    ("folder", "worst", "is_handicap", "sentence"),
    [
        ("nvlink", "P2P/CUMEM", False,
         "The GPUs talk directly over NVLink (P2P/CUMEM, 24 channels)."),
        ("shm", "SHM/direct/direct", True,
         "The GPUs talk through host memory, because NCCL_P2P_DISABLE=1 is set in the "
         "environment."),
        ("socket", "NET/Socket", True,
         "The GPUs talk over TCP sockets on eth0 although both GPUs are in one host, because "
         "NCCL_P2P_DISABLE=1 and NCCL_SHM_DISABLE=1 are set in the environment."),
    ],
)  # fmt: skip
def test_the_verdicts(folder, worst, is_handicap, sentence):
    log = read_nccl_log(files(folder))
    verdict = judge(log)
    assert worst_ring_edge(log).name == worst
    assert (verdict.sentence, verdict.is_handicap) == (sentence, is_handicap)
    assert any("Harmless" in note for note in verdict.notes) == (folder != "socket")
    assert any("NVLink, which is not used" in note for note in verdict.notes) == is_handicap


def test_one_rank_of_two_is_said_and_not_guessed():
    """NCCL calls two GPUs two nodes when every way inside a host is forbidden."""
    verdict = judge(read_nccl_log(files("socket")[:1]))
    assert verdict.sentence == "The GPUs talk over TCP sockets on eth0."
    assert verdict.is_handicap is None
    assert any("give the logs of all ranks" in note for note in verdict.notes)


def test_a_console_of_both_ranks_says_the_same(tmp_path):
    """Lines of two processes in turns, with the prefixes of torchrun."""
    columns = [text(path).splitlines() for path in files("shm")]
    mixed = []
    for i in range(max(map(len, columns))):
        mixed += [f"[default{rank}]:{c[i]}" for rank, c in enumerate(columns) if i < len(c)]
    console = tmp_path / "console.log"
    console.write_text("\n".join(mixed) + "\n")
    alone, together = read_nccl_log(files("shm")), read_nccl_log([console])
    assert together.edges == alone.edges
    assert together.communicators == alone.communicators
    assert together.choices == alone.choices
    assert judge(together) == judge(alone)


def test_the_command(capsys):
    from app import cli

    with pytest.raises(SystemExit) as left:
        cli.main(["nccl", *map(str, files("socket")), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert left.value.code == 0
    assert report["transports"] == {"NET/Socket": 4}
    assert (report["channels"], report["num_ranks"], report["version"]) == (2, 2, "2.28.9")
    levels = {one["name"]: one["level"] for one in report["variables"]}
    assert levels["NCCL_SHM_DISABLE"] == "handicap"
