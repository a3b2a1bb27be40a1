"""Many processes, one console: nothing raises, whole lines count, torn ones are not made up."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringside.nccl_log import judge, read_nccl_log, read_text
from ringside.nccl_log.lines import split
from tests.nccl_log.conftest import said, started

EDGES = [
    said(f"Channel {c:02d}/0 : {src}[{src}] -> {dst}[{dst}] {way}", pid=100 + src, device=src)
    for c, (src, dst), way in itertools.product(
        range(12),
        [(0, 1), (1, 0), (1, 12)],
        ["via P2P/CUMEM/read", "[send] via NET/IB/12/GDRDMA"],
    )
]
OTHERS = [
    *(said(f"NCCL_{name} set by environment to 16.") for name in ("MIN_CTAS", "NTHREADS")),
    *(started(rank, 16) for rank in range(2)),
    said("Ring 00 : 15 -> 0 -> 1", "Trees [0] 1/-1/-1->0->-1", "Using network IB"),
    said("AllReduce: 94851728 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}"),
    "\nnode1:100:100 [0] net.cc:1 NCCL WARN NET/IB : No IP interface found.\n",
    "a line of the program itself\n",
]
LINES = st.sampled_from(EDGES + OTHERS)


@st.composite
def consoles(draw: st.DrawFn) -> tuple[str, set[str], set[str]]:
    """A console, the whole lines in it, and the lines of which it holds a beginning or an end."""
    parts, whole, broken = [], set(), set()
    for line in draw(st.lists(LINES, min_size=1, max_size=25)):
        other = draw(LINES).strip()
        cut = draw(st.integers(1, len(other) - 1))
        torn = draw(st.sampled_from(["", other[:cut], other[cut:] + "\n"]))
        parts += [torn, line]
        whole.add(line)
        broken.add(other + "\n")
    return "".join(parts), whole, broken


def facts(text: str) -> set[object]:
    log = read_text(text)
    edges = {(one.channel, one.src, one.dst, one.name, one.nic) for one in log.edges}
    return edges | set(log.environment.items()) | {one.size_bytes for one in log.choices}


@given(consoles())
def test_the_facts_of_whole_lines_survive_and_none_is_made_up(console):
    text, whole, broken = console
    found = facts(text)
    assert facts("".join(sorted(whole))) <= found
    assert found <= facts("".join(sorted(whole | broken)))
    assert judge(read_text(text)).sentence


@given(st.lists(LINES, min_size=1, max_size=20), st.data())
def test_a_cut_file_says_what_stands_before_the_cut(lines, data):
    text = "".join(lines)
    cut = data.draw(st.integers(0, len(text)))
    assert facts(text[:cut]) == facts(text[: text.rfind("\n", 0, cut) + 1])


@given(st.text(), st.lists(LINES, max_size=5))
def test_any_text_can_be_read(text, lines):
    found = read_text(text + "NCCL INFO " + text + "\n" + "".join(lines) + text)
    assert judge(found).sentence


@given(st.binary(max_size=300))
def test_any_bytes_around_a_line_can_be_read(tmp_path_factory, noise):
    path = tmp_path_factory.mktemp("noise") / "nccl.log"
    path.write_bytes(b"." + noise + b"\n" + EDGES[0].encode() + noise)
    assert len(read_nccl_log([path]).edges) == 1


def test_torn_lines_are_counted():
    line = EDGES[0]
    ((whole,), num_torn) = split(line[:50] + line)
    assert (whole.text, num_torn) == (split(line)[0][0].text, 1)
    assert split(line.rstrip("\n")) == ([], 1)
    assert read_text(line[:50] + line).num_torn == 1


def test_the_host_of_a_line_that_sticks_to_another():
    torn = "node1:100:100 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SH"
    log = read_text(EDGES[0] + torn + EDGES[0])
    assert log.hosts == ("node1",)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 60_000,
        "NCCL " * 12_000,
        "node1:1:1 " * 6_000 + "NCCL ",
        "[" * 30_000 + "NCCL" + ":" * 30_000,
        "a:" * 30_000 + "1:1 [0] NCCL INFO x",
        said("Channel 00/02 : " + "1 " * 25_000 + "x").rstrip("\n"),
        said("Trees " + "[0] 1" * 10_000).rstrip("\n"),
        said("GPU/0-60 :" + "GPU/0-60 (0/5000.0/LOC) " * 2_000 + "x").rstrip("\n"),
        said("4 coll channels" + ", 4 p2p channels" * 3_000 + "x").rstrip("\n"),
        said("AllReduce |" + "  1.0/  1.0 |" * 4_000 + "x").rstrip("\n"),
        said("NET/IB : Using" + " [0]mlx5_0" * 5_000).rstrip("\n"),
    ],
    ids=range(11),
)
def test_no_line_takes_long(text):
    """A pattern that tries every split of a long line would take hours."""
    begun = time.perf_counter()
    read_text(text + "\n")
    assert time.perf_counter() - begun < 2
