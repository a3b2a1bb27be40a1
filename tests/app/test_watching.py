"""What the terminal says of a run that is watched: standstills, requests, load, what to try."""

from __future__ import annotations

import json
import os
import shutil
from types import SimpleNamespace

import msgspec
import pytest

from app.commands import running, watching
from app.commands.watching import stack_lines
from app.views.watching import hang_lines, sample_lines
from ringside import identity
from ringside.errors import LaunchError
from ringside.hang import Hang, Standstill
from ringside.marks import Mark
from ringside.records import ExitRecord, Failure
from ringside.run import fold_run
from ringside.samples import GpuSample, RankSample, Sample
from ringside.stacks import Frame, RankStacks, ThreadStack

RUN = "20260101-000000-calm-fox"
GIB = 2**30


@pytest.fixture
def live(make_spec, write_run):
    """A run that has no owner yet, so that nobody closes it."""
    run = write_run(make_spec(device="cpu"), RUN, state=None, epochs=1)
    run.requests.mkdir()
    return run


def mark(rank, activity, t) -> Mark:
    return Mark(rank=rank, pid=1, phase="train", activity=activity, epoch=1, step=41, batch=1, t=t)


STANDS = Standstill(
    since=110.0, limit_s=20.0, step=41, epoch=1, p95_step_ms=1234.0,
    marks=(mark(0, "backward", 110.0), mark(1, "data", 105.0)),
)  # fmt: skip


def test_a_run_that_stands_still_says_who_waits_for_whom(live):
    live.write(live.hang, Hang(now=STANDS, past=(msgspec.structs.replace(STANDS, until=151.0),)))
    assert hang_lines(fold_run(live), now=140.0) == (
        "Stood still for 41 s at step 41, and came on.",
        "Probably hung: no rank has come on for 30 s, and 95 % of the steps take at most 1.2 s. "
        "Rank 1 stopped at step 41 while loading data; rank 0 waited for it at step 41 in the "
        "backward pass for 30 s.",
        "Where each rank stands, call by call: `ringside stacks calm-fox`",
    )
    first = msgspec.structs.replace(STANDS, p95_step_ms=None)
    live.write(live.hang, Hang(now=first))
    assert "the first steps are not done yet" in hang_lines(fold_run(live), now=140.0)[0]


def test_a_run_that_never_came_on_says_so_when_it_is_over(make_spec, write_run):
    run = write_run(make_spec(), RUN, state="stopped")
    run.write(run.hang, Hang(now=STANDS))
    assert hang_lines(fold_run(run), now=999.0) == (
        "No rank came on from step 41 on, until it ended.",
    )


def test_show_tells_of_requests_and_load(ringside, live):
    live.request("stop-after-epoch")
    live.request("profile", steps=7)
    samples = [
        Sample(t=2.0 * n, ranks=(RankSample(rank=0, cpu_cores=1.5, memory_bytes=GIB),))
        for n in range(3)
    ]
    live.gpus.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in samples))
    text = ringside("show", RUN)[1]
    assert "stops after epoch 1\nrecords its next 7 steps\n" in text
    assert "rank 0: 1.50 cores busy (at most 1.50), memory at most 1.00 GiB\n" in text
    found = json.loads(ringside("show", RUN, "--json")[1])
    assert [(one["kind"], one["steps"]) for one in found["asked"]] == [
        ("stop-after-epoch", None), ("profile", 7),
    ]  # fmt: skip
    assert {"of": "rank", "index": 0, "name": "cpu_cores", "p50": 1.5, "max": 1.5} in (
        found["samples"]
    )
    assert (found["hang"], found["failure_kind"], found["what_to_try"]) == (None, None, [])


def test_gpus_stand_for_their_ranks_where_there_are_any(live):
    gpu = GpuSample(
        index=2, utilisation_ratio=0.9, memory_used_bytes=40 * GIB, memory_total_bytes=140 * GIB,
        power_w=500.0, pcie_rx_bytes_per_s=3e9, pcie_tx_bytes_per_s=1e9,
        throttle_reasons=("power cap",),
    )  # fmt: skip
    sample = Sample(t=1.0, gpus=(gpu,), ranks=(RankSample(rank=0, memory_bytes=1),))
    live.gpus.write_bytes(msgspec.json.encode(sample) + b"\n")
    assert sample_lines(fold_run(live)) == (
        "GPU 2: busy 90 % of the time (at most 90 %), memory at most 40.0 of 140.0 GiB, "
        "500 W (at most 500 W), PCIe 1.00 GB/s out and 3.00 GB/s in, slowed by power cap 100 % of "
        "the time",
    )


def test_a_failed_run_says_what_to_try(ringside, make_spec, write_run):
    run = write_run(make_spec(), RUN, state=None)
    failure = Failure(rank=1, cause="data", kind="data")
    ended = ExitRecord(state="failed", reason="x", started=1.0, finished=2.0, failure=failure)
    run.write(run.exit, ended)
    assert "Find every bad file at once: `ringside data check emoji`" in ringside("show", RUN)[1]
    found = json.loads(ringside("show", RUN, "--json")[1])
    assert found["failure_kind"] == "data"
    assert "`ringside data check emoji`" in found["what_to_try"][0]
    assert found["exit"]["failure"]["kind"] == "data"


def test_a_checkpoint_is_asked_for_of_a_run_under_way_only(ringside, live, make_spec, write_run):
    code, out, _ = ringside("checkpoint", RUN)
    assert (code, live.requested("checkpoint")) == (0, True)
    assert out.startswith("calm-fox saves a checkpoint at its next step;")
    over = write_run(make_spec(), "20260102-000000-swift-hare")
    code, _, err = ringside("checkpoint", "swift-hare")
    assert (code, err) == (
        2, "swift-hare is completed and cannot save a checkpoint; only a run under way can.\n",
    )  # fmt: skip
    assert not over.requested("checkpoint")
    assert ringside("stacks", "swift-hare")[2] == (
        "swift-hare is completed; only a run under way has stacks to show.\n"
    )


def test_a_run_without_ranks_has_nobody_to_ask(ringside, live):
    code, _, err = ringside("stacks", RUN)
    assert (code, err.startswith("calm-fox has no rank yet")) == (2, True)


def test_a_rank_that_came_on_meanwhile_has_no_place(ringside, live, monkeypatch):
    """Its stack is of a moment between the two marks, and may be of neither."""
    marks = [
        [mark(0, "data", 1.0), mark(1, "data", 1.0)],
        [mark(0, "data", 1.0), mark(1, "forward", 2.0)],
    ]
    stacks = tuple(RankStacks(rank=rank, threads=()) for rank in (0, 1))
    monkeypatch.setattr("app.commands.watching.read_marks", lambda _run: marks.pop(0))
    monkeypatch.setattr("app.commands.watching.dump_stacks", lambda _run: stacks)
    _, out, _ = ringside("stacks", RUN, "--json")
    assert [one["place"] for one in json.loads(out)] == ["at step 41 while loading data", None]


def test_ranks_are_told_with_their_place_and_our_own_calls():
    wait = Frame(file="/v/site-packages/torch/distributed/distributed_c10d.py", line=9,
                 function="all_gather")  # fmt: skip
    own = Frame(file="/x/training/control.py", line=85, function="gather")
    draw = Frame(file="/x/ringside/data/products/render.py", line=5, function="_draw")
    stacks = [
        RankStacks(rank=0, threads=(ThreadStack(ident="1", frames=(wait, own), is_main=True),)),
        RankStacks(rank=1, threads=(ThreadStack(ident="1", frames=(draw,), is_main=True),)),
        RankStacks(rank=2, problem="it does not answer"),
    ]
    marks = {0: mark(0, "exchange", 1.0), 1: mark(1, "data", 1.0), 2: mark(2, "data", 1.0)}
    assert list(stack_lines(stacks, marks)) == [
        "rank 0: in the exchange after step 41; waits in all_gather "
        "(torch/distributed/distributed_c10d.py:9 all_gather)",
        "    training/control.py:85 gather",
        "rank 1: at step 41 while loading data (products/render.py:5 _draw)",
        "    products/render.py:5 _draw",
        "rank 2: at step 41 while loading data; it does not answer",
    ]
    everything = list(stack_lines(stacks, marks, threads=True))
    assert "  rank 0, thread main" in everything
    assert "    torch/distributed/distributed_c10d.py:9 all_gather" in everything


def test_who_follows_a_run_that_is_tried_again_follows_that_one(ringside, make_spec, write_run):
    """And is not told to begin again what goes on already."""
    first, again = write_run(make_spec(), RUN, state=None, epochs=0), "20260101-000000-swift-owl"
    write_run(make_spec(), again, epochs=1)
    failure = Failure(rank=1, cause="killed", kind="killed", advice="Start it anew.")
    ended = ExitRecord(state="failed", reason="A rank was killed.", started=1.0, finished=2.0,
                       failure=failure, retried_as=again)  # fmt: skip
    first.write(first.exit, ended)
    code, out, _ = ringside("watch", RUN)
    assert code == 0
    assert "calm-fox: tried again as swift-owl" in out
    assert out.index("A rank was killed") < out.index("tried again") < out.index("epoch 1 of")
    assert "ringside run" not in out
    assert "Start it anew" not in out
    first.write(first.exit, msgspec.structs.replace(ended, retried_as=None))
    code, out, _ = ringside("watch", RUN)
    assert code == 1
    assert "ringside run" in out
    assert "Start it anew" in out


def test_following_a_run_that_is_deleted_ends(ringside, live, monkeypatch):
    deletes = SimpleNamespace(sleep=lambda _: shutil.rmtree(live.path))
    monkeypatch.setattr(running, "time", deletes)
    code, _, err = ringside("watch", RUN)
    assert code == 2
    assert "calm-fox was deleted while it was followed" in err


def test_a_py_spy_that_does_not_come_back_is_told(live, monkeypatch, tmp_path):
    tool = tmp_path / "py-spy"
    tool.write_text("#!/bin/sh\nexec sleep 30\n")
    tool.chmod(0o755)
    monkeypatch.setattr(watching.shutil, "which", lambda *_, **__: str(tool))
    monkeypatch.setattr(watching, "NATIVE_S", 0.2)
    me = identity.of(os.getpid())
    monkeypatch.setattr(watching, "rank_processes", lambda *_: {3: me})
    with pytest.raises(LaunchError, match="py-spy had no stacks of rank 3 within"):
        watching._print_native(live)
    tool.write_text("no program")
    with pytest.raises(LaunchError, match=r"py-spy cannot be started: .*Exec format error"):
        watching._print_native(live)
