"""Which rank keeps the others waiting, from the lines that every rank leaves."""

from __future__ import annotations

import msgspec
import pytest

from ringside.rank_windows import (
    NUM_WINDOWS,
    RankWindow,
    rank_parts,
    read_rank_windows,
    slowest,
)
from ringside.rundir import RunDir


@pytest.fixture
def run(tmp_path) -> RunDir:
    (tmp_path / "ranks").mkdir()
    return RunDir(tmp_path)


def line(step: int, *, epoch: int = 2, num_steps: int = 10, **times: object) -> bytes:
    parts = {"step_ms": 100, "data_ms": 5, "forward_ms": 30, "backward_ms": 60, "optimizer_ms": 5}
    window = RankWindow(
        t=1.0, epoch=epoch, step=step, num_steps=num_steps, **{"host_ms": 40, **parts, **times}
    )
    return msgspec.json.encode(window) + b"\n"


def write(run: RunDir, rank: int, *lines: bytes) -> None:
    (run.ranks / f"rank{rank}.jsonl").write_bytes(b"".join(lines))


def test_the_late_rank_is_long_in_its_own_work(run):
    """Rank 1 waits 30 ms longer for its images, so the others wait for it in backward."""
    write(run, 0, line(10), line(20))
    write(run, 1, line(10, data_ms=35, backward_ms=30), line(20, data_ms=35, backward_ms=30))
    write(run, 2, line(10, forward_ms=31), line(20, forward_ms=31))
    first, *others = slowest(rank_parts(run))
    assert (first.part, first.rank, first.ms) == ("data", 1, 35)
    assert (first.excess_ms, first.excess_ratio) == (30, 0.3)
    assert [(one.part, one.rank, one.excess_ms) for one in others] == [
        ("forward", 2, 1), ("host", 0, 0),
    ]  # fmt: skip


def test_means_weigh_windows_by_their_steps_and_leave_starts_and_profiles_out(run):
    write(
        run, 0, line(5, epoch=1, data_ms=900), line(6, num_steps=1, data_ms=800),
        line(7, num_steps=1, data_ms=8), line(10, num_steps=3, data_ms=4),
        line(20, num_steps=7, data_ms=500, profiled=True),
    )  # fmt: skip
    (parts,) = rank_parts(run)
    assert (parts.rank, parts.num_steps, parts.data_ms) == (0, 4, 5)
    assert slowest([parts]) == ()


def test_only_the_ends_of_long_files_are_read(run):
    lines = [line(step) for step in range(3000)]
    write(run, 0, *lines, b'{"torn": ')
    windows = read_rank_windows(run)[0]
    assert [window.step for window in windows] == list(range(3000 - NUM_WINDOWS, 3000))


def test_older_and_bad_lines(run):
    old = b'{"t":1,"epoch":2,"step":9,"num_steps":1,"step_ms":1,"data_ms":0,"forward_ms":1,'
    write(run, 0, b"\xff\n", b"{}\n", old + b'"backward_ms":0,"optimizer_ms":0}\n')
    write(run, 1)
    (run.ranks / "rankX.jsonl").write_bytes(line(1))
    (parts,) = rank_parts(run)
    assert (parts.rank, parts.host_ms) == (0, None)
    other = msgspec.structs.replace(parts, rank=1)
    assert [one.part for one in slowest([parts, other])] == ["data", "forward"]
    assert rank_parts(RunDir(run.path / "none")) == ()
