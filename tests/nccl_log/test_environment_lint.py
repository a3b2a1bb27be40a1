"""Variables that are set: what each does, and which of them are a handicap or forgotten."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ringside import environment_lint
from ringside.environment_lint import PREFIXES, lint, table

ROWS = tomllib.loads((Path(environment_lint.__file__).parent / "variables.toml").read_text())


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("NCCL_P2P_DISABLE", "1", "handicap"),
        ("NCCL_P2P_DISABLE", "0", "setting"),
        ("NCCL_SHM_DISABLE", "1", "handicap"),
        ("NCCL_IB_DISABLE", "1", "handicap"),
        ("NCCL_P2P_LEVEL", "LOC", "handicap"),
        ("NCCL_P2P_LEVEL", "SYS", "leftover"),
        ("NCCL_ALGO", "Tree", "handicap"),
        ("NCCL_ALGO", "Ring", "handicap"),
        ("NCCL_PROTO", "LL128", "handicap"),
        ("NCCL_NET", "Socket", "handicap"),
        ("NCCL_NET", "IB", "setting"),
        ("NCCL_DEBUG", "info", "leftover"),
        ("NCCL_DEBUG", "WARN", "setting"),
        ("NCCL_MIN_NCHANNELS", "4", "leftover"),
        ("NCCL_SOCKET_IFNAME", "eth0", "setting"),
        ("NCCL_SOCKET_NTHREADS", "2", "setting"),
        ("NCCL_IB_PKEY", "1", "setting"),
        ("CUDA_LAUNCH_BLOCKING", "1", "handicap"),
        ("CUDA_LAUNCH_BLOCKING", "0", "setting"),
        ("CUDA_VISIBLE_DEVICES", "", "handicap"),
        ("CUDA_VISIBLE_DEVICES", "0,1", "setting"),
        ("TORCH_DISTRIBUTED_DEBUG", "DETAIL", "handicap"),
        ("TORCH_DISTRIBUTED_DEBUG", "OFF", "setting"),
        ("TORCH_NCCL_BLOCKING_WAIT", "1", "handicap"),
        ("TORCH_NCCL_TRACE_BUFFER_SIZE", "2000", "leftover"),
        ("OMP_NUM_THREADS", "1", "leftover"),
        ("OMP_NUM_THREADS", "8", "setting"),
        ("GLOO_SOCKET_IFNAME", "lo", "setting"),
        ("NCCL_NO_SUCH_VARIABLE_OF_ANYONE", "1", "unknown"),
    ],
)
def test_levels(name, value, level):
    (finding,) = lint({name: value})
    assert (finding.name, finding.value, finding.level) == (name, value, level)
    assert finding.about
    assert finding.sentence.startswith(f"{name}={value}: ")
    if level in ("handicap", "leftover"):
        assert finding.why


def test_older_names_lead_to_the_new_ones():
    (finding,) = lint({"NCCL_MIN_NCHANNELS": "4"})
    assert "NCCL_MIN_CTAS" in finding.why


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("NCCL_P2P_DISABEL", "NCCL_P2P_DISABLE"),
        ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
        ("OMP_NUM_THREAD", "OMP_NUM_THREADS"),
        ("TORCH_DISTRIBUTED_DEBUGS", "TORCH_DISTRIBUTED_DEBUG"),
    ],
)
def test_a_misspelt_name_is_met_with_the_nearest(name, meant):
    (finding,) = lint({name: "1"})
    assert (finding.level, finding.nearest) == ("unknown", meant)
    assert f"Is {meant} meant?" in finding.sentence


def test_other_variables_are_left_alone_and_the_worst_comes_first():
    found = lint(
        {"HOME": "/root", "ZCCL_ALGO": "x", "NCCL_DEBUG": "INFO", "GLOO_SOCKET_IFNAME": "eth0",
         "NCCL_XYZZY_QUUX": "1", "NCCL_SHM_DISABLE": "1", "CUDA_LAUNCH_BLOCKING": "1"}
    )  # fmt: skip
    assert [finding.level for finding in found] == [
        "handicap", "handicap", "leftover", "unknown", "setting",
    ]  # fmt: skip
    assert lint({}) == ()


def test_every_row_has_a_source_and_a_sentence_that_ends():
    """A row that is misread would speak for another value, so the table is read strictly."""
    assert len(table()) > 250
    for name, row in table().items():
        assert row.sources, name
        assert all(source.startswith("http") or "measured" in source for source in row.sources)
        assert row.about.endswith("."), name
        assert all(rule.why.endswith(".") for rule in row.rules), name
        assert row.successor is None or row.successor in table()


def test_no_name_stands_twice_and_all_are_of_the_families():
    further = ROWS["known"]["names"].split()
    rows = [name for name in ROWS if name not in ("sources", "known")]
    assert len(set(further + rows)) == len(further + rows)
    others = {"PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCHDYNAMO_DISABLE", "CUDACXX"}
    assert {name for name in rows + further if not name.startswith(PREFIXES)} == others
