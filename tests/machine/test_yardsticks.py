"""Healthy ranges: the right one is chosen, and what was measured on real machines lies in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ringside.machine import Link
from ringside.machine.yardsticks import YARDSTICKS, judge, route_of, yardstick_of

LAB = Path(__file__).resolve().parents[3] / "shared" / "lab" / "h200x2"
NVLINK = (Link(a=0, b=1, kind="nvlink"),)
ONE_BRIDGE = (*NVLINK, Link(a=0, b=2, kind="node"), Link(a=1, b=2, kind="node"))


@pytest.mark.parametrize(
    ("transport", "links", "route"),
    [
        ("P2P/CUMEM", NVLINK, "nvlink"),
        ("P2P/CUMEM", ONE_BRIDGE, "pcie"),
        ("P2P/direct pointer", (Link(a=0, b=1, kind="sys"),), "pcie"),
        ("P2P/IPC", (), None),
        ("SHM/direct/direct", NVLINK, "shm"),
        ("NET/Socket", NVLINK, "socket"),
        ("NET/Socket/0", (), "socket"),
        ("NET/IB/3/GDRDMA", (), "ib"),
        (None, NVLINK, None),
    ],
)
def test_the_way_of_the_bytes(transport, links, route):
    assert route_of(transport, links) == route


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        # Published plateaus: the sources of the table.
        ("NVIDIA H200", 482), ("NVIDIA H200", 367), ("NVIDIA H100 80GB HBM3", 370),
        ("NVIDIA H100 PCIe", 115), ("NVIDIA A100-SXM4-80GB", 234.9), ("NVIDIA A100", 208),
        ("NVIDIA B200", 846), ("NVIDIA GeForce RTX 2080 Ti", 21),
    ],
)  # fmt: skip
def test_published_figures_are_healthy(name, gb_per_s):
    yardstick = yardstick_of("P2P/CUMEM", name, NVLINK)
    assert judge(gb_per_s * 1e9, yardstick) == "healthy"


def test_an_unknown_gpu_has_no_range_over_nvlink():
    assert yardstick_of("P2P/CUMEM", "NVIDIA T1000", NVLINK) is None
    assert yardstick_of(None, "cpu", ()) is None


@pytest.mark.parametrize(
    ("gb_per_s", "standing"),
    [(50, "far below"), (99, "far below"), (150, "below"), (200, "healthy"), (500, "above")],
)
def test_standings(gb_per_s, standing):
    assert judge(gb_per_s * 1e9, yardstick_of("P2P/CUMEM", "NVIDIA H200", NVLINK)) == standing


def test_every_range_has_a_source_and_is_one():
    for one in YARDSTICKS:
        assert 0 < one.low_bytes_per_s < one.high_bytes_per_s
        assert len(one.source) > 20


@pytest.mark.skipif(not LAB.is_dir(), reason=f"{LAB} is not on this machine")
@pytest.mark.parametrize(
    ("folder", "transport"),
    [("nvlink", "P2P/CUMEM"), ("shm", "SHM/direct"), ("socket", "NET/Socket")],
)
def test_measured_sweeps_are_healthy(folder, transport):
    """Two ranks: the bus carries as much as the array has bytes."""
    rows = json.loads((LAB / folder / "sweep.json").read_text())
    large = [row for row in rows if row["kib"] >= 64 * 1024]
    yardstick = yardstick_of(transport, "NVIDIA H200", NVLINK)
    assert large
    assert {judge(row["kib"] * 1024 / row["ms"] * 1e3, yardstick) for row in large} == {"healthy"}
