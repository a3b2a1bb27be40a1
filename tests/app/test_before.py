"""Before Start: what is accepted, who uses the GPUs, what the form changes, the same by hand."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time

import msgspec
import pytest

from app import cli
from app.commands import running
from app.page.draw.before import before_list, difference_table
from app.views import form
from app.views.before import accepted_of, look_before
from app.views.difference import difference_view, last_run
from app.views.estimates import estimate_words
from app.views.fields import request_of
from app.views.gpus import GpuWatch, gpu_choices
from app.views.setup import accepted_warnings
from app.views.terminal import terminal_command
from ringside.errors import SpecError
from ringside.estimate import Estimate
from ringside.hardware import Gpu, Hardware
from ringside.launch import local
from ringside.machine import GpuState, Process
from ringside.preflight import kept_of
from ringside.request import RunRequest, resolve
from ringside.run import fold_run
from ringside.rundir import list_run_dirs
from ringside.spec import RunSpec

FILLED = {"source": "products:ci", "preset": "ddp", "model": "resnet10t", "epochs": 2,
          "when_busy": "queue", "request_id": "one"}  # fmt: skip
GPUS = Hardware(
    gpus=tuple(
        Gpu(index=i, name="NVIDIA H200", uuid=f"GPU-{i}", memory_total_bytes=141 * 10**9,
            memory_used_bytes=10**9, compute_capability=(9, 0))
        for i in range(2)
    ),
    num_cores=16, versions={"torch": "2.11.0+cu130"},
)  # fmt: skip


@pytest.fixture
def quiet_start(monkeypatch):
    """Runs are made, and no supervisor starts."""
    monkeypatch.setattr(local, "start", lambda run: None)


@pytest.fixture
def leftover(monkeypatch):
    """A variable that a preflight warns of."""
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")


def _no_report(_):
    return None


@pytest.mark.parametrize("text", [None, "", "{", "3", "{}", '[1, null, "disk"]'])
def test_only_codes_are_accepted(text):
    assert accepted_of({"accepted": text}) == ({"disk"} if text and "disk" in text else set())


def test_a_warning_is_accepted_one_by_one_and_kept(hardware, runs_root, quiet_start, leftover):
    with pytest.raises(SpecError, match="TORCH_DISTRIBUTED_DEBUG"):
        form.start(FILLED, hardware, runs_root)
    with pytest.raises(SpecError, match="TORCH_DISTRIBUTED_DEBUG"):
        form.start(FILLED | {"accepted": '["disk"]'}, hardware, runs_root)
    assert list_run_dirs(runs_root) == []
    run = form.start(FILLED | {"accepted": '["environment", "disk"]'}, hardware, runs_root)
    assert kept_of(run).accepted == ("environment",)
    assert [item.code for item in kept_of(run).items if item.level == "warning"] == ["environment"]
    assert [item.code for item in accepted_warnings(fold_run(run))] == ["environment"]


def test_pressed_twice_a_start_asks_no_new_question(hardware, runs_root, quiet_start, monkeypatch):
    first = form.start(FILLED, hardware, runs_root)
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    assert form.start(FILLED, hardware, runs_root).id == first.id
    assert len(list_run_dirs(runs_root)) == 1


def test_an_error_blocks_whatever_was_accepted(hardware, runs_root, quiet_start):
    absent = msgspec.structs.replace(hardware, versions={"accelerate": "1.15.0"})
    with pytest.raises(SpecError, match="torch is not installed"):
        form.start(FILLED | {"accepted": '["torch"]'}, absent, runs_root)


def test_beside_others_is_accepted_by_its_own_choice(hardware, runs_root, runs, quiet_start):
    runs.add("amber-fox")
    run = form.start(FILLED | {"when_busy": "beside"}, hardware, runs_root)
    assert kept_of(run).accepted == ("beside",)
    assert run.read(run.spec, RunSpec).beside


def test_measured_first_then_this_one(hardware, runs_root, quiet_start):
    values = FILLED | {"when_busy": "beside"}
    run = form.start_after_baseline(values, hardware, runs_root)
    made = sorted(list_run_dirs(runs_root), key=lambda one: one.spec.stat().st_mtime_ns)
    specs = [one.read(one.spec, RunSpec) for one in made]
    assert [spec.preset for spec in specs] == ["single", "ddp"]
    assert run.read(run.spec, RunSpec) == specs[1]
    assert specs[1].queue
    assert form.start_after_baseline(values, hardware, runs_root).id == run.id
    assert len(list_run_dirs(runs_root)) == 2


def test_the_list_says_levels_in_words_and_says_nothing_twice(hardware, runs_root, leftover):
    before = look_before(FILLED, hardware, runs_root, _no_report)
    html = before_list(before)
    assert "Warning · Variables" in html
    assert 'name="accept" value="environment"' in html
    assert "1 to decide" in html
    refused = form.plan(FILLED | {"batch": 33}, hardware)
    before = look_before(FILLED | {"batch": 33}, hardware, runs_root, _no_report)
    html = before_list(before, refused.sentence)
    assert "1 to mend" in html
    assert refused.sentence not in html


def test_nonsense_is_one_error_and_hostile_words_stay_words(hardware, runs_root):
    before = look_before(FILLED | {"epochs": 1.5}, hardware, runs_root, _no_report)
    assert [item.code for item in before.found.errors] == ["request"]
    evil = FILLED | {"model": "<img src=x onerror=alert(1)>"}
    html = before_list(look_before(evil, hardware, runs_root, _no_report))
    assert "<img" not in html


def test_gpus_are_chosen_by_number_with_who_uses_them(runs, runs_root):
    run = runs.add("amber-fox", preset="single", device="cuda", gpu_ids=(0,))
    foreign = Process(pid=4711, name="python", user="kim", memory_bytes=38 * 10**9)
    states = (
        GpuState(index=0, name="NVIDIA H200"),
        GpuState(index=1, name="NVIDIA H200", processes=(foreign,)),
    )
    labels = [label for label, _ in gpu_choices(GPUS, runs_root, states)]
    assert labels == [
        "GPU 0 · NVIDIA H200 · 141.0 GB · used by amber-fox (yours)",
        "GPU 1 · NVIDIA H200 · 141.0 GB · used by python (kim), 38.0 GB",
    ]
    run.request("stop")
    assert "use not known yet" in gpu_choices(GPUS, runs_root, ())[1][0]
    assert gpu_choices(Hardware(), runs_root, ()) == []


def test_chosen_gpus_are_those_that_train():
    request = request_of(FILLED | {"gpus": [1], "preset": "single"})
    spec = resolve(request, GPUS)
    assert (spec.gpu_ids, spec.num_processes) == ((1,), 1)
    assert request_of(FILLED | {"gpus": []}).gpus is None


def test_a_driver_that_hangs_holds_nobody_up():
    answered, states = threading.Event(), (GpuState(index=0, name="H200"),)

    def slow(_):
        answered.wait(10)
        return states

    watch = GpuWatch(GPUS, slow)
    began = time.monotonic()
    assert watch.states() == watch.states() == ()
    assert time.monotonic() - began < 1
    answered.set()
    deadline = time.monotonic() + 5
    while not watch.states() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert watch.states() == states


def test_a_driver_that_fails_leaves_what_was_known():
    def broken(_):
        raise RuntimeError("the driver is of another decade")

    watch = GpuWatch(GPUS, broken)
    assert watch.states() == ()
    assert GpuWatch(Hardware(), broken).states() == ()


def test_what_differs_from_the_preset_and_from_the_last_run(hardware, runs, runs_root):
    runs.add("pale-fox", epochs=0, ended="completed", global_batch=64)
    other = runs.add("calm-otter", ended="completed")
    spec = other.read(other.spec, RunSpec)
    data = msgspec.structs.replace(spec.data, profile="demo")
    other.write(other.spec, msgspec.structs.replace(spec, data=data))
    request = request_of(FILLED | {"precision": "bf16", "batch": 96})
    spec = resolve(request, hardware)
    assert last_run(runs_root, spec.data)[0] == "pale-fox"
    view = difference_view(spec, request, hardware, runs_root)
    assert view.columns == ("ddp, left alone", "this form", "pale-fox")
    lines = {line.name: line.values for line in view.differing}
    assert lines["mixed precision"] == ("no", "bf16", "no")
    assert lines["global batch"] == ("128", "96", "64")
    assert lines["model"] == ("resnet50", "resnet10t", "resnet10t")
    assert "seed" not in lines
    assert "seed" in {line.name for line in view.agreed}
    html = difference_table(view)
    assert html.index("mixed precision") < html.index("<details") < html.index('<td class="l">seed')


def test_a_form_of_its_own_preset_changes_nothing(hardware, runs_root):
    request = RunRequest(preset="ddp", data="products:ci")
    view = difference_view(resolve(request, hardware), request, hardware, runs_root)
    assert view.differing == ()
    assert "this is the preset as it is" in difference_table(view)


ASKED = {
    "source": "folder", "preset": "ddp_accum4", "model": "resnet18", "epochs": 2, "batch": 64,
    "processes": 2, "image_size": 48, "seed": 3, "profile": 2, "time_limit": "1h30m",
    "retry": True, "keep_global_batch": True, "when_busy": "queue", "precision": "bf16",
    "overrides": "optimizer=sgd\nbest_by=val_loss", "learning_rate": 0.01,
}  # fmt: skip


@pytest.fixture
def pictures(tmp_path):
    """Pictures in a folder whose name breaks careless quoting."""
    from PIL import Image

    folder = tmp_path / 'it\'s $HOME; "x" äöü'
    for i in range(200):
        place = folder / ("a" if i % 2 else "b")
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (i, 20, 90)).save(place / f"{i:03}.png")
    return folder


def test_the_command_asks_a_terminal_for_the_same(hardware, runs_root, pictures, monkeypatch):
    """The words of the line, taken apart by a shell, make the very request of the form."""
    request = request_of(ASKED | {"folder": str(pictures)})
    line = terminal_command(request, resolve(request, hardware).data, runs_root)
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True
    ).stdout.decode()
    words = printed.rstrip("\0").split("\0")
    assert words[:2] == ["env", f"RINGSIDE_RUNS={runs_root}"]
    asked = []
    monkeypatch.setattr(running, "start", lambda one, **_: asked.append(one) or 0)
    with pytest.raises(SystemExit):
        cli.main(words[words.index("run") :])
    assert asked == [request]


def test_the_command_works_in_a_shell(hardware, runs_root, pictures):
    values = {"source": "folder", "folder": str(pictures), "preset": "ddp", "batch": 16}
    shown = form.preview(values, hardware, runs_root)
    done = subprocess.run(
        ["bash", "-c", f"{shown.terminal} --dry-run"], cwd="/",
        env=os.environ | {"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "global batch 16 = 8 x 2 x 1" in done.stdout
    assert ("OMP_NUM_THREADS", "1", "Ringside") in shown.environment


def test_cards_tell_bytes_per_step():
    found = Estimate(preset="ddp", num_devices=2, micro_batch=64, global_batch=128, step_ms=10.0,
                     num_bytes=94_800_000)  # fmt: skip
    assert estimate_words(found) == "predicted: 10.0 ms a step · 94.8 MB a step"


def test_a_run_of_the_terminal_is_not_beside_itself(monkeypatch, tmp_path, capsys, quiet_start):
    monkeypatch.setenv("RINGSIDE_RUNS", str(tmp_path))
    monkeypatch.setenv("GLOO_SOCKET_IFNAM", "lo")
    request = RunRequest(preset="ddp", data="products:ci", model="resnet10t")
    assert running.start(request, follow=False) == 0
    assert "▲ warning  environment: GLOO_SOCKET_IFNAM=lo" in capsys.readouterr().out
    (run,) = list_run_dirs(tmp_path)
    assert kept_of(run).accepted == ("environment",)


def test_the_terminal_says_the_same_and_blocks_with_1(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RINGSIDE_RUNS", str(tmp_path))
    for words, code, level in ((["--batch", "33"], 1, "error"), ([], 0, "fine")):
        with pytest.raises(SystemExit) as left:
            cli.main(["preflight", "ddp", "--json", *words])
        found = json.loads(capsys.readouterr().out)
        assert left.value.code == code
        assert found.keys() == {"format", "preset", "items"}
        assert found["items"][0].keys() == {"code", "level", "sentence", "field"}
        assert found["items"][0]["level"] == level
    with pytest.raises(SystemExit):
        cli.main(["preflight", "ddp", "--data", "products:ci"])
    assert "✓ fine     classes: All 16 classes" in capsys.readouterr().out
