"""What commands about runs print in another language: no English but names and units."""

from __future__ import annotations

import json
import re

import msgspec
import numpy as np
import pytest

from app.commands import reading, watching
from app.commands.printing import print_some
from app.commands.running import epoch_line
from ringside.class_scores import ClassTables, EpochClasses, write_class_scores
from ringside.marks import Mark
from ringside.predictions import Predictions, write_predictions
from ringside.run import fold_run
from ringside.scores import score
from ringside.stacks import Frame, RankStacks, ThreadStack
from ringside.words import DEFAULT, say, templates
from tests.app.prose import nothing_english, untold

BASE, RUN = "20260101-000000-calm-otter", "20260102-000000-swift-hare"
RUNS = (BASE, RUN, "calm-otter", "swift-hare", "otter", "hare")
NOTE = say("noted.traces_missing", DEFAULT, n=1, num=2)
CLASSES = ["hat", "shoe", "bag"]


@pytest.fixture
def story(make_spec, write_run):
    base = write_run(make_spec("single"), BASE)
    return base, write_run(make_spec("ddp", num_processes=4), RUN, step_s=0.13, auc_macro=0.77)


# --- runs -------------------------------------------------------------------------------------


def test_the_list_has_the_english_of_the_words():
    """It is kept beside them, so that `list` has no need to open them."""
    words = templates(DEFAULT)
    assert {key: words[key] for key in reading.ENGLISH} == reading.ENGLISH


def test_the_english_list_opens_no_words(ringside, story, monkeypatch):
    def opened(*_: object) -> None:
        raise AssertionError("the words were opened")

    monkeypatch.setattr("ringside.words.catalogue", opened)
    _, out, err = ringside("list")
    assert err.startswith("runs in ")
    assert out.split()[1] == "completed"
    assert ringside("list", "--search", "nothing-like-it")[2].endswith("are not put away.\n")


def test_the_list(in_chinese, ringside, root, story):
    out, err = nothing_english(ringside("list"), root, *RUNS)
    assert "已完成" in out
    assert err == f"{root} 中的运行\n"
    _, err = nothing_english(ringside("list", "--search", "nothing-like-it"), root)
    assert say("runs.none_fit", "zh") in err


def test_the_first_list(in_chinese, ringside, root):
    _, err = nothing_english(ringside("list"), root)
    assert err.endswith("还没有运行。开始一次：`ringside run single`\n")


def test_a_plan(in_chinese, ringside):
    out = ringside("run", "ddp", "--dry-run", "--set", "learning_rate=1e-2")[1]
    told, _, files = out.partition("\n# accelerate.yaml\n")
    assert files
    first, *notes_and_settings = told.splitlines()
    settings = [line for line in notes_and_settings if " = " in line]
    assert "  training.learning_rate = 0.01（命令行）" in settings
    assert {line.rpartition("（")[2] for line in settings} == {
        "命令行）", "预设）", "默认）", "本机）",
    }  # fmt: skip
    notes = [line for line in notes_and_settings if line not in settings]
    assert untold("\n".join((first, *notes))) == []


@pytest.fixture
def started(monkeypatch, write_run):
    """Instead of a launcher: the run is there at once and has ended."""
    from ringside.launch import local

    monkeypatch.setattr(local, "start_run", lambda spec, *_: write_run(spec, RUN, epochs=2))


def test_a_run_is_started_and_followed(in_chinese, ringside, started, root):
    out, _ = nothing_english(ringside("run", "ddp", "--epochs", "2"), root, *RUNS)
    assert f"运行 {RUN}，位于 {root / RUN}" in out
    assert "跟踪它：`ringside watch swift-hare`" in out
    out = ringside("watch", "swift")[1]
    *epochs, last = out.splitlines()
    assert len(epochs) == 2
    assert epochs[0].startswith("第 1/2 轮  100.0 s")
    assert untold("\n".join(epochs)) == []
    # What somebody else wrote of the end stays as it is.
    assert last == "已完成：The run completed."


def test_what_is_said_as_it_comes(in_chinese, ringside, make_spec, write_run):
    run = write_run(make_spec("ddp", epochs=2), RUN, epochs=2)
    begun, *epochs = map(json.loads, run.events.read_text().splitlines())
    lines = [
        {"kind": "phase_started", "phase": "data"},
        {"kind": "phase_started", "phase": "setup"},
        {**begun, "num_left_out": 3},
        {"kind": "warned", "code": "resume", "message": NOTE},
        *epochs,
    ]
    run.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    record = json.loads(run.exit.read_text())
    run.exit.write_text(json.dumps({**record, "reason": say("ended.completed", DEFAULT)}))
    out, _ = nothing_english(ringside("watch", "swift"), run.path.parent, *RUNS)
    assert out.startswith("读取数据 ...\n构建模型 ...\n备注：")


def test_scores_over_some_of_the_classes(in_chinese, make_spec, write_run):
    record = fold_run(write_run(make_spec("ddp"), RUN))
    row = msgspec.structs.replace(
        record.epochs[0], num_auc_classes=7, undefined_classes=tuple("abc")
    )
    line = epoch_line(row, record)
    assert "AUC 0.800（10 个类别中的 7 个）  F1" in line
    assert untold(line) == []


def test_stops(in_chinese, ringside, story, make_spec, write_run):
    out, _ = nothing_english(ringside("stop", RUN), *RUNS)
    assert out == "swift-hare 早已结束：已完成。\n"
    live = write_run(make_spec("ddp"), "20260103-000000-calm-fox", state=None)
    live.requests.mkdir()
    out, _ = nothing_english(ringside("stop", live.id, "--after-epoch"), live.name)
    assert out == "calm-fox 会在本轮之后停止。\n"
    out, _ = nothing_english(ringside("checkpoint", live.id), live.name)
    assert out.startswith("calm-fox 在下一步保存检查点；")
    out, _ = nothing_english(ringside("profile", live.id, "--steps", "7"), live.name)
    assert out.startswith("calm-fox 记录接下来的 7 步；")


def test_refusals(in_chinese, ringside, story):
    """Of what a run has not left, and of a comparison with nothing."""
    for call in (("trace", RUN), ("nccl", RUN), ("nccl", BASE), ("compare", RUN)):
        code, _, err = ringside(*call)
        assert (code, untold(err, story[0].path.parent, *RUNS, "compare")) == (2, [])


def test_where_ranks_stand(in_chinese):
    wait = Frame(file="/v/site-packages/torch/distributed/distributed_c10d.py", line=9,
                 function="all_gather")  # fmt: skip
    own = Frame(file="/x/training/control.py", line=85, function="gather")
    stacks = [
        RankStacks(rank=0, threads=(ThreadStack(ident="1", frames=(wait, own), is_main=True),)),
        RankStacks(rank=1, problem=say("stacks.silent")),
    ]
    marks = {0: _mark(0, "exchange"), 1: _mark(1, "data")}
    lines = list(watching.stack_lines(stacks, marks, threads=True))
    assert lines[0].endswith("（torch/distributed/distributed_c10d.py:9 all_gather）")
    assert "  rank 0，线程：主线程" in lines
    assert untold("\n".join(line for line in lines if line[:4] != "    "), lines[0][-60:]) == []


def _mark(rank: int, activity: str) -> Mark:
    return Mark(rank=rank, pid=1, phase="train", activity=activity, epoch=1, step=41, batch=1,
                t=1.0)  # fmt: skip


def test_the_rest_of_a_list(in_chinese, capsys):
    print_some("…", ["x"] * 25)
    assert capsys.readouterr().out.endswith("\n  另有 5 项；--json 会全部列出\n")


def test_what_stands_in_the_way(in_chinese, ringside, root):
    code, out, _ = ringside("preflight", "ddp")
    codes = re.findall(r"^. \S+ +([\w-]+)", out, re.MULTILINE)
    assert {"request", "disk"} <= set(codes)
    assert untold(out, root, *codes) == []
    assert re.search("^✓ 正常     request：", out, re.MULTILINE)
    assert code == 0


# --- comparisons ------------------------------------------------------------------------------


def keep_predictions(run, noise):
    targets = (np.random.default_rng(7).random((300, 3)) < 0.4).astype(np.uint8)
    wobble = np.random.default_rng(1).normal(0, noise, targets.shape)
    found = (0.5 + (targets - 0.5) * 0.5 + wobble).clip(0, 1).astype(np.float32)
    write_predictions(run, Predictions(3, "multi_label", found, targets))
    scores = score(found, targets, CLASSES, "multi_label")
    last = EpochClasses(epoch=3, task="multi_label", num_evaluated=300, threshold=0.5,
                        classes=tuple(scores.per_class))  # fmt: skip
    write_class_scores(run, ClassTables(last=last))


def test_a_comparison(in_chinese, ringside, story, make_spec, write_run, root):
    for run, noise in zip(story, (0.2, 0.5), strict=True):
        keep_predictions(run, noise)
    other = write_run(make_spec("single", precision="bf16"), "20260103-000000-calm-fox")
    names = (root, *RUNS, other.id, "calm-fox", *CLASSES)
    code, out, err = ringside("compare", BASE, RUN, other.id, "--classes")
    # In what the runs differ is told by the names of settings, which are typed.
    before, _, rest = out.partition(f"\n{say('compare.different')}")
    nothing_english((code, before + rest.partition("\n\n")[2], err), *names)
    heads, *_ = out.splitlines()
    assert heads.split() == [
        "运行", "预设", "设备", "精度", "轮", "图片/秒", "加速比", "效率", "AUC", "宏平均", "F1",
        "mAP", "ΔAUC", "ΔF1", "ΔmAP", "设备小时",
    ]  # fmt: skip
    assert re.search(r"-0\.\d{4}（-0\.\d{3} 到 -0\.\d{3}）", out)
    assert "\n精度系数（bf16，每设备 64 张图片，单设备，相对 fp32）：1.00x\n" in out
    assert "没有加速比，" in out


def test_a_gate(in_chinese, ringside, story):
    for run, noise in zip(story, (0.2, 0.5), strict=True):
        keep_predictions(run, noise)
    _, out, _ = ringside("compare", RUN, "--gate", "--against", BASE)
    assert untold(out, *RUNS, *CLASSES) == []


# --- the doctor -------------------------------------------------------------------------------


def test_the_doctor(in_chinese, ringside, story, root):
    out, _ = nothing_english(ringside("doctor", RUN), root, *RUNS)
    assert re.match(r"结论：[^,()]+，[^,()]+（[A-Z]+-\d+）\n", out)
    assert "（环境变量）\n" in out
    assert re.search("^  6. .正常.|^  6. .注意.", out, re.MULTILINE)
