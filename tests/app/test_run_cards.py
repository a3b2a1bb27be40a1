"""The cards of a run's page: ranks, devices, standstill, ages, what to try, and what is held."""

from __future__ import annotations

import re
import time

import msgspec
import pytest

from app.page.draw.devices import device_strip, rank_table
from app.page.draw.runs import commands, hang_banner, run_head, stamp, tiles
from app.page.draw.stacks import stacks_card
from app.views.desk import Desk
from app.views.life import Life
from app.views.memory import Memory
from app.views.ranks import rank_split
from app.views.run import Tile
from app.views.strip import strip_rows
from ringside.hang import Hang, Standstill
from ringside.marks import Mark
from ringside.records import write_exit
from ringside.samples import GpuSample, RankSample, Sample
from ringside.stacks import Frame, RankStacks, ThreadStack
from ringside.words import speaking


def write_ranks(run, *data_ms):
    """One window of each rank, in which all steps take 100 ms."""
    for rank, ms in enumerate(data_ms):
        window = {
            "t": 1.0, "epoch": 1, "step": 10, "num_steps": 10, "step_ms": 100.0, "data_ms": ms,
            "forward_ms": 20.0, "backward_ms": 70.0 - ms, "optimizer_ms": 5.0, "host_ms": 1.0,
        }  # fmt: skip
        (run.ranks / f"rank{rank}.jsonl").write_bytes(msgspec.json.encode(window) + b"\n")


def test_the_parts_of_each_rank_and_the_late_one(runs, runs_root):
    run = runs.add("late-lark", epochs=1)
    write_ranks(run, 5.0, 45.0, 6.0)
    split = Desk(runs_root).look(run.id)[0].ranks
    assert [row.name for row in split.rows] == ["rank 0", "rank 1", "rank 2"]
    times = {part.key: part.time for part in split.rows[1].parts}
    assert times == {
        "data": "45.0 ms", "forward": "20.0 ms", "backward": "25.0 ms", "optimizer": "5.0 ms",
        "rest": "5.0 ms",
    }  # fmt: skip
    assert sum(part.share for part in split.rows[1].parts) == pytest.approx(1)
    assert split.sentence.startswith("Rank 1 waits 39.5 ms longer for its images")
    html = rank_table(split)
    assert html.count("<tr>") == 4
    assert "width" not in html or "flex:0 0 45.00%" in html


def test_even_ranks_and_a_lone_one(runs):
    run = runs.add("even-eel")
    write_ranks(run, 5.0, 5.0)
    assert rank_split(run).sentence.startswith("No rank takes noticeably longer")
    (run.ranks / "rank1.jsonl").unlink()
    assert rank_split(run) is None
    assert rank_table(None) == ""


def test_a_row_for_each_gpu_and_rank():
    gpu = GpuSample(
        index=3, utilisation_ratio=0.5, memory_used_bytes=10**10, memory_total_bytes=4 * 10**10,
        power_w=210.4, pcie_rx_bytes_per_s=3e6, pcie_tx_bytes_per_s=1e6,
        throttle_reasons=("sw_power_cap",),
    )  # fmt: skip
    samples = [
        Sample(t=10.0 + 2 * n, gpus=(gpu,), ranks=(RankSample(rank=0, cpu_cores=n / 2.0),))
        for n in range(3)
    ]
    first, second = strip_rows(samples, {3: "NVIDIA H200"})
    assert (first.name, second.name) == ("GPU 3 · H200", "rank 0")
    assert [spark.value for spark in first.sparks] == [
        "50 %", "10.0 GB of 40.0 GB", "210 W", "↓\xa03.0\xa0MB/s ↑\xa01.0\xa0MB/s",
    ]  # fmt: skip
    assert first.note == "clocks held down by sw power cap in 100 % of the time"
    assert first.sparks[1].points == ((0.0, 0.25), (0.5, 0.25), (1.0, 0.25))
    assert second.sparks[0].points == ((0.0, 0.0), (0.5, 0.5), (1.0, 1.0))
    html = device_strip((first, second), is_over=False)
    assert html.count("<polyline") == 5
    assert "10.0 GB of 40.0 GB" in html


def test_a_run_that_is_over_shows_the_whole_of_it_and_its_highest_values():
    """What its devices do after it has ended says nothing."""
    samples = [
        Sample(
            t=2.0 * n,
            gpus=(GpuSample(index=0, utilisation_ratio=0.9 if n == 3 else 0.0, power_w=100.0 + n),),
        )
        for n in range(400)
    ]
    (live,) = strip_rows(samples)
    (over,) = strip_rows(samples, is_over=True)
    assert [spark.value for spark in live.sparks] == ["0.0 %", "499 W"]
    assert [spark.value for spark in over.sparks] == ["up to 90 %", "up to 499 W"]
    assert max(y for _, y in over.sparks[0].points) == 0.9
    assert "the whole run" in device_strip((over,), is_over=True)


def test_what_holds_clocks_down_is_told_in_the_language_that_is_spoken():
    gpu = GpuSample(index=0, utilisation_ratio=0.5, throttle_reasons=("power cap",))
    with speaking("zh"):
        (row,) = strip_rows([Sample(t=float(n), gpus=(gpu,)) for n in range(3)])
    assert row.note == "有 100 % 的时间时钟受限（功耗上限）"


def test_without_samples_a_sentence():
    assert strip_rows([]) == ()
    assert "Nothing sampled yet" in device_strip((), is_over=False)
    assert "No device was sampled" in device_strip((), is_over=True)


def test_samples_come_as_they_are_written(runs, runs_root):
    run, desk = runs.add("warm-wren"), Desk(runs_root)
    assert desk.strip(run.id) == ()
    line = Sample(t=1.0, ranks=(RankSample(rank=0, cpu_cores=1.5),))
    run.gpus.write_bytes(msgspec.json.encode(line) + b"\n")
    found = desk.strip(run.id)
    assert found[0].sparks[0].value == "1.5 cores"
    assert desk.strip(run.id) is found, "nothing new is nothing to draw"
    write_exit(run, state="completed", reason="Completed.")
    desk.look(run.id)
    over = desk.strip(run.id)
    assert over[0].sparks[0].value == "up to 1.5 cores"
    assert desk.strip(run.id) is over


def test_a_standstill_says_since_when_and_where(runs, runs_root):
    run = runs.add("hung-hare", epochs=1)
    marks = tuple(
        Mark(rank=rank, pid=1, phase="train", activity=activity, epoch=2, step=41, batch=1, t=1.0)
        for rank, activity in enumerate(("backward", "data"))
    )
    now = Standstill(
        since=time.time() - 75, limit_s=20.0, step=41, epoch=2, marks=marks, p95_step_ms=120.0
    )
    run.write(run.hang, Hang().begun(now))
    desk = Desk(runs_root)
    view, life = desk.look(run.id)
    html = stamp(hang_banner(view.hang), now.since + 75.5)
    assert "No rank has come on for <time" in html
    assert ">75 s</time>" in html
    assert "rank 1 stands at step 41 while loading data" in html
    assert "120.0 ms" in html
    with speaking("zh"):
        chinese = hang_banner(desk.look(run.id)[0].hang)
    assert "第 41 步，正在加载数据" in chinese
    assert " at " not in chinese
    assert "trainer" in life.silent
    assert "the trainer is silent" in run_head(view, life)
    run.write(run.hang, Hang().begun(now).ended(now.since + 41))
    view, _ = desk.look(run.id)
    assert view.hang is None
    assert any("41 s" in note and "step 41" in note for note in view.notes)


def test_the_pace_before_a_standstill_is_not_shown_as_the_pace_now(runs, runs_root):
    run = runs.add("hung-heron", epochs=2)
    desk = Desk(runs_root)

    def shown():
        tiles = {tile.label: tile for tile in desk.look(run.id)[0].tiles}
        return {
            label: tiles[label].value for label in tiles if "images/s" in label or "left" in label
        }

    moving = shown()
    assert "images/s now" in moving
    assert "–" not in moving["images/s now"]
    run.write(
        run.hang, Hang().begun(Standstill(since=1.0, limit_s=20.0, step=9, epoch=2, marks=()))
    )
    assert shown() == {
        "images/s · no rank comes on": "–", "left · not known while ranks stand still": "–",
    }  # fmt: skip
    run.write(run.hang, Hang())
    assert shown() == moving


def test_before_the_first_steps_nothing_is_usual(runs, runs_root):
    run = runs.add("new-newt")
    run.write(
        run.hang, Hang().begun(Standstill(since=1.0, limit_s=300.0, step=0, epoch=1, marks=()))
    )
    view, _ = Desk(runs_root).look(run.id)
    assert "not done yet; standing still counts after 5 m 00 s" in hang_banner(view.hang)


def test_words_between_backquotes_are_set_as_code_on_a_tile():
    html = tiles([Tile("–", "no baseline: run `single <b>` first")])
    assert 'run <code class="rs-code">single &lt;b&gt;</code> first' in html


def test_ages_are_counted_from_the_server_s_clock(runs, runs_root):
    view, _ = Desk(runs_root).look(runs.add("calm-owl", epochs=1).id)
    head = run_head(view, Life(heard_t=1000.0))
    assert head == run_head(view, Life(heard_t=1000.0)), "it is sent again only when it changed"
    shown = stamp(head, now=1007.4)
    assert 'last sign of life <time data-since="1000.0" data-now="1007.4">7 s</time> ago' in shown
    counted = stamp(tiles([Tile("38 s", "left", until_t=1038.0)]), now=1000.0)
    assert '<b data-until="1038.0" data-now="1000.0">38 s</b>' in counted


def test_a_command_in_a_sentence_can_be_copied():
    html = commands("Try `ringside run 'a <b>'` & wait.")
    assert re.sub("<[^>]*>", "", html) == "Try ringside run &#x27;a &lt;b&gt;&#x27;Copy &amp; wait."
    assert 'data-copy="ringside run &#x27;a &lt;b&gt;&#x27;"' in html


def test_stacks_are_grouped_and_folded():
    own = Frame(file="/x/training/loop.py", line=165, function="step<")
    inner = Frame(file="/y/torch/distributed/c10d.py", line=9, function="all_reduce")
    waiting = ThreadStack(ident="0x1", frames=(inner, own), is_main=True)
    late = ThreadStack(ident="0x1", frames=(own,), is_main=True)
    html = stacks_card([
        RankStacks(rank=0, threads=(waiting,)), RankStacks(rank=1, threads=(late,)),
        RankStacks(rank=2, threads=(waiting,)), RankStacks(rank=3, problem="It is gone."),
    ])  # fmt: skip
    lines = re.findall("<li>(.*?)</li>", html)
    assert lines[0].startswith("rank 1: does nothing that can be named · training/loop.py:165")
    assert lines[1].startswith("rank 0, 2: waits in all_reduce · training/loop.py:165 step&lt;")
    assert lines[2] == "rank 3: It is gone."
    assert html.count("<details") == 3


class TestMemory:
    def test_a_token_stands_for_what_was_kept(self):
        memory = Memory()
        held = {"head": "1f", "log": ["console", 15], "curves": {"rate": [1, 2, 3, 4]}}
        token = memory.keep(held)
        assert len(token) == 16
        assert memory.recall(token) == held
        assert memory.keep(dict(reversed(held.items()))) == token
        memory.recall(token)["head"] = "changed"
        assert memory.recall(token) == held

    @pytest.mark.parametrize("token", [None, "", "nonsense", 7, ["x"], "x" * 10**6])
    def test_a_token_from_nowhere_stands_for_nothing(self, token):
        assert Memory().recall(token) == {}

    def test_whoever_polls_is_kept_and_the_rest_goes(self):
        memory = Memory(limit=3)
        mine = memory.keep({"viewer": 0})
        for other in range(1, 10):
            memory.keep({"viewer": other})
            assert memory.recall(mine) == {"viewer": 0}
        assert memory.recall(memory.keep({"viewer": 9})) == {"viewer": 9}
        assert sum(bool(memory.recall(t)) for t in list(memory._kept)) == 3
