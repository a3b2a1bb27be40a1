"""What the commands of data, machines, presets and playbooks print in another language."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

from app.commands import demo, machine_tables
from app.views.playbook_export import export_playbook
from ringside.environment_lint import lint
from ringside.hardware import Hardware
from ringside.launch import local
from ringside.machine import Process
from ringside.machine.yardsticks import YARDSTICKS
from ringside.presets import Library
from ringside.words import DEFAULT, say, templates
from tests.app.prose import nothing_english, untold
from tests.app.test_machine_command import sweep_of, two_gpus

LAB = Path(__file__).parents[3] / "shared" / "lab" / "h200x2"
BASE, RUN = "20260101-000000-calm-otter", "20260102-000000-swift-hare"
ACCELERATE = """\
compute_environment: LOCAL_MACHINE
distributed_type: MULTI_GPU
machine_rank: 0
mixed_precision: bf16
num_machines: 1
num_processes: 4
use_cpu: false
"""


def test_the_words_are_chinese():
    english, chinese = templates(DEFAULT), templates("zh")
    sections = ("following.", "preparing.", "demo.", "presets.", "check.")
    same = {key for key in english if key.startswith(sections) and english[key] == chinese[key]}
    assert same == {"following.phase"}


# --- data -------------------------------------------------------------------------------------


@pytest.fixture
def photos(tmp_path):
    """Two classes, a picture that is none, one that no run uses, and one of an unusual kind."""
    folder = tmp_path / "photos"
    for name in ("cat", "dog"):
        (folder / name).mkdir(parents=True)
        for i in range(5):
            colour = (i * 40, 90, 200 if name == "cat" else 10)
            Image.new("RGB", (40, 40), colour).save(folder / name / f"{i}.png")
    Image.new("CMYK", (40, 40), (1, 2, 3, 4)).save(folder / "cat" / "ink.jpg")
    (folder / "dog" / "torn.png").write_bytes(b"no picture")
    (folder / "dog" / "notes.txt").write_text("of nobody")
    return folder


def test_a_check_of_data(in_chinese, ringside, photos):
    code, out, err = ringside("data", "check", str(photos), "--workers", "1")
    assert code == 1
    names = (photos, "cat", "dog", "torn.png", "ink.jpg", ".txt", "b'no picture'")
    assert untold(out + err, *names) == []
    assert out.startswith(f"{photos}：单标签。")
    assert re.search(r"^  类别  +训练  +验证$", out, re.MULTILINE)
    assert "  1 张，CMYK 色彩，转换为 RGB：cat/ink.jpg\n" in out
    assert "加上 --skip-bad，一次运行会使用11 张图片。其中有" in out
    (photos / "dog" / "torn.png").unlink()
    out, _ = nothing_english(ringside("data", "check", str(photos), "--workers", "1"), *names)
    assert "\n一次运行会使用11 张图片。" in out


def test_preparing(in_chinese, ringside, photos, tmp_path):
    call = (
        "data", "prepare", str(photos), "--short-side", "16", "--out", str(tmp_path / "small"),
        "--yes", "--skip-bad", "--workers", "1",
    )  # fmt: skip
    names = (photos, tmp_path, "torn.png", "dog", "small", "b'no picture'")
    out, err = nothing_english(ringside(*call), *names)
    assert "\n已略去：dog/torn.png：" in f"\n{err}"
    assert re.search(r"^11 张图片，1 MB，用时 [\d.]+ s\n用它们训练：--data ", out)
    out, _ = nothing_english(ringside(*call), *names)
    assert "此前已预处理" in out
    made = str(tmp_path / "made")
    out, _ = nothing_english(
        ringside("data", "make", "--profile", "ci", "--num-images", "4", made), tmp_path, "ci"
    )
    assert out.lstrip().startswith("已在 ")


# --- machines and logs ------------------------------------------------------------------------


def test_a_machine(in_chinese, capsys):
    machine = two_gpus(
        variables=lint({"NCCL_P2P_DISABLE": "1", "NCCL_ALGO": "Tree"}), load_average=15.9,
        problems=(say("machine.torch_cuda", DEFAULT, why="CUDA error 35"),), free_ports=0,
    )  # fmt: skip
    from ringside.doctor.machine_check import machine_findings

    sweep = sweep_of(machine)
    machine_tables.print_machine(machine)
    machine_tables.print_rest(machine, sweep, machine_findings(machine, sweep))
    machine_tables.print_rest(machine, None, ())
    out = capsys.readouterr().out
    # Citations, and what NCCL or torch say themselves.
    own = (
        "ann",
        "python",
        "pid",
        "NVML",
        "CUDA error 35",
        *sweep.failed,
        *(one.source for one in YARDSTICKS),
    )
    assert untold(out, *own) == []
    assert out.startswith("2 x NVIDIA H200，16 核，128 GiB 内存，驱动 570.86.15，")
    assert re.search("^GPU  名称 +显存 GiB +负载", out, re.MULTILINE)
    assert "NCCL_P2P_DISABLE=1（拖慢运行）：" in out
    assert "更慢（" in out


def test_a_poor_machine(in_chinese, capsys):
    stranger = Process(pid=7, memory_bytes=None)
    gpu = two_gpus().gpus[0]
    slow = type(gpu)(index=0, name="T4", processes=(stranger,), pcie_generation=1, pcie_width=8,
                     max_pcie_generation=3, max_pcie_width=16, is_pcie_loaded=False)  # fmt: skip
    bare = two_gpus(gpus=(), links=(), variables=(), load_average=None, shm_free_bytes=None)
    machine_tables.print_machine(bare)
    machine_tables.print_machine(two_gpus(gpus=(slow,), links=()))
    out = capsys.readouterr().out
    assert untold(out, "T4") == []
    assert out.startswith("没有 GPU，16 核，")
    assert "1 x8，最高 3 x16，空闲时" in out
    assert "7（未知）" in out


def test_this_machine(in_chinese, ringside, root, monkeypatch):
    import ringside.launch.torch_report as torch_report

    machine = two_gpus(gpus=(), links=(), hardware=Hardware(num_cores=1))
    monkeypatch.setattr(torch_report, "check_machine", lambda root, load_links: machine)
    out, err = nothing_english(ringside("doctor"), root)
    assert err == "正在查看本机。\n只有一个设备，没有可通信的对象：不测量集合通信。\n"
    assert "\n已保存在 " in out


@pytest.mark.skipif(not LAB.is_dir(), reason=f"no logs in {LAB}")
@pytest.mark.parametrize("kind", ["nvlink", "shm", "socket"])
def test_logs_of_nccl(in_chinese, ringside, kind):
    out, _ = nothing_english(ringside("nccl", str(LAB / kind)), "eth0", "vm", "P2P/CUMEM")
    assert "NCCL 2.28.9，CUDA 13.0，2 个 rank，主机 vm，" in out


def test_complaints_in_a_log_of_nccl(in_chinese, ringside, tmp_path):
    log = tmp_path / "a.log"
    log.write_text(
        "n1:1:1 [0] NCCL INFO NCCL version 2.18.3+cuda12.1\n"
        "n1:1:1 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.\n"
        "n1:1:1 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed\n"
    )
    out, _ = nothing_english(ringside("nccl", str(log)), "socketProgress: Connection closed")
    assert "\n警告\n  " in out
    assert re.search("，1 次：socketProgress", out)


# --- presets ----------------------------------------------------------------------------------


def test_the_presets(in_chinese, ringside):
    names = (*Library().presets, "cuda", "ZeRO", "SyncBatchNorm", "DataParallel", "LocalSGD")
    out, _ = nothing_english(ringside("presets", "list"), *names)
    assert re.match("预设 +内容 +设备 +来源 +校验和 +作者\n", out)
    assert "  内置  " in out
    told = ringside("presets", "show", "ddp")[1].split("\n\n")[0]
    assert re.search("^为什么 .+\n何时   .+\n限制   .+\n设备   cuda, cpu\n", told, re.MULTILINE)
    assert untold(told, Path(__file__).parents[2], *names) == []


def test_presets_of_ones_own(in_chinese, ringside, tmp_path):
    names = ("ours", "theirs", "wide", "ddp_fp16", "ddp", tmp_path)
    calls = (
        ("clone", "ddp", "ours"), ("rename", "ours", "theirs"), ("history", "theirs"),
        ("diff", "ddp", "theirs"), ("check", str(tmp_path / "home/ringside/presets/theirs.yaml")),
        ("export", "theirs", str(tmp_path / "x.yaml"), "--accelerate"), ("delete", "theirs"),
    )  # fmt: skip
    told = [nothing_english(ringside("presets", *call), *names)[0] for call in calls]
    assert told[0].startswith("已将 ddp 克隆为 ours，位于 ")
    assert told[3] == "ddp 与 theirs 的设置相同\n"
    assert told[-1].startswith("已删除 theirs；")


def test_an_import(in_chinese, ringside, tmp_path):
    file = tmp_path / "theirs.yaml"
    file.write_text(ACCELERATE)
    code, out, err = ringside("presets", "import", str(file), "--save")
    keys = re.findall(r"^\d+ +([\w.]+)", out, re.MULTILINE)
    assert "num_processes" in keys
    assert (code, untold(out + err, tmp_path, "theirs", "Theirs", *keys)) == (0, [])
    assert out.startswith("theirs：Accelerate 配置，")
    assert f"已作为 theirs 保存在 {tmp_path}" in out


def test_ways_to_adapt(in_chinese, ringside):
    out, _ = nothing_english(
        ringside("presets", "adapt", "ddp", "--made-for", "4", "--devices", "2"),
        "accumulate", "resize", "rescale",
    )  # fmt: skip
    assert out.startswith("accumulate：用 2 个设备")


# --- playbooks --------------------------------------------------------------------------------


def test_playbooks(in_chinese, ringside, root, make_spec, write_run, tmp_path, monkeypatch):
    """Titles and tables are those of the playbook's files, in English as those are."""
    write_run(make_spec("single"), BASE)
    write_run(make_spec("ddp"), RUN)
    target = tmp_path / "two.zip"
    export_playbook(root, [BASE, RUN], target=target, title="Two")
    names = (BASE, RUN, "calm-otter", "swift-hare", "two", "Two", tmp_path, root)
    out, _ = nothing_english(ringside("playbook", "import", str(target)), *names)
    assert out.startswith("已作为 two 保存在 ")
    # A cause is what `--cause` takes.
    out, _ = nothing_english(ringside("playbook", "list"), *names, "unexplained", "none")
    assert out.startswith("two  自己的  ")
    out = ringside("playbook", "show", "two")[1]
    assert re.search("^  下一步：", out, re.MULTILINE)
    assert "\n硬件与版本：\n" in out
    out, _ = nothing_english(ringside("playbook", "diff", "two", "two"), *names)
    assert out == "两者没有不同。\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(readline=lambda: "n\n"))
    code, out, _ = ringside("playbook", "remove", "two")
    assert (code, out) == (1, "要删除方案手册 two 吗？[y/N] 没有删除任何内容\n")
    assert ringside("playbook", "remove", "two", "--yes")[1] == "已删除 two\n"


# --- the demo ---------------------------------------------------------------------------------


def test_the_demo(in_chinese, capsys, root, write_run, monkeypatch):
    def start_run(spec, *_):
        run = write_run(spec, f"20260101-000000-calm-{spec.preset}", epochs=spec.epochs)
        reason = {"reason": say("ended.completed", DEFAULT)}
        run.exit.write_text(json.dumps(json.loads(run.exit.read_text()) | reason))
        return run

    monkeypatch.setattr(local, "start_run", start_run)
    monkeypatch.setattr(demo, "read_hardware", lambda: Hardware(num_cores=2))
    page = SimpleNamespace(serve=lambda **_: "http://127.0.0.1:7860")
    monkeypatch.setitem(sys.modules, "app.page", page)
    assert demo.main(epochs=2, port=None, once=True) == 0
    out = capsys.readouterr().out
    assert untold(out, root, "calm-single", "calm-ddp", "calm") == []
    assert "\nsingle：1 个进程，" in out
