"""What stands in the way of a run: each code from a machine, a request or a folder that has it."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

import msgspec
import pytest

from ringside.data import check_data
from ringside.data.check.report import BadFile, ClassCount
from ringside.errors import SpecError
from ringside.hardware import Gpu, Hardware
from ringside.launch.queue_order import Order, change_order
from ringside.machine import GpuState, Process
from ringside.measurements import Description, Gradient, StepProfile
from ringside.measurements.store import Store, key_of_model
from ringside.preflight import all_checks, keep, kept_of, look, preflight, record_of
from ringside.preflight.checks import disk, shared_memory
from ringside.records import write_owner
from ringside.request import RunRequest, resolve
from ringside.rundir import RunDir
from ringside.words import catalogue, speaking

DOCUMENT = Path(__file__).parents[2] / "docs" / "preflight.md"
GB = 10**9
CPU = Hardware(num_cores=2, versions={"torch": "2.14.1+cpu"})


def gpu(index: int, capability: tuple[int, int] | None = (9, 0)) -> Gpu:
    return Gpu(
        index=index, name="H200", uuid=f"GPU-{index}", memory_total_bytes=140 * GB,
        memory_used_bytes=GB, compute_capability=capability,
    )  # fmt: skip


GPUS = Hardware(gpus=(gpu(0), gpu(1)), num_cores=16, versions={"torch": "2.11.0+cu130"})


def state(index: int, *processes: Process, used: int = GB) -> GpuState:
    return GpuState(
        index=index, name="H200", memory_used_bytes=used, memory_total_bytes=140 * GB,
        processes=processes,
    )  # fmt: skip


def found(root, request=None, hardware=CPU, **details):
    """The items by code; of several of one code the first."""
    details.setdefault("environment", {})
    case = look(request or RunRequest(preset="ddp"), hardware, root, **details)
    items = {}
    for item in preflight(case).items:
        items.setdefault(item.code, item)
    return items


def levels(root, *arguments, **details):
    return {code: item.level for code, item in found(root, *arguments, **details).items()}


def test_an_idle_machine_has_nothing_against_the_default(tmp_path):
    assert set(levels(tmp_path).values()) == {"fine"}


def test_codes_are_frozen_documented_and_titled():
    codes = {check.CODE for check in all_checks()} | {"request"}
    documented = re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    assert sorted(codes) == sorted(documented)
    assert all(f"preflight.title_{code}" in catalogue() for code in codes)


def test_all_mistakes_are_said_at_once_and_each_with_its_field(tmp_path):
    request = RunRequest(
        preset="ddp", data="no-such", model="rasnet50", epochs=0, batch=33, processes=9, seed=-1,
        overrides={"optimiser": "sgd"},
    )  # fmt: skip
    case = look(request, CPU, tmp_path)
    assert {item.field for item in preflight(case).errors} == {
        "data", "model", "epochs", "batch", "processes", "seed", "overrides",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"batch": 33, "processes": 1, "data": "no-such"}, "data"),
        ({"batch": 4096, "data": "no-such"}, "data"),
        ({"preset": "nope", "batch": 33}, "preset"),
        ({"batch": 4096}, None),
    ],
)
def test_what_is_right_together_is_no_mistake(tmp_path, asked, field):
    """33 over one process is fine, and 4,096 only against the data that there are."""
    errors = preflight(look(RunRequest(**({"preset": "ddp"} | asked)), CPU, tmp_path)).errors
    assert [item.field for item in errors] == [field]


def test_a_torch_that_cannot_use_the_gpus(tmp_path):
    wrong = msgspec.structs.replace(GPUS, versions={"torch": "2.14.1+cpu"})
    assert levels(tmp_path, hardware=wrong)["torch"] == "error"
    absent = msgspec.structs.replace(CPU, versions={"accelerate": "1.15"})
    assert levels(tmp_path, hardware=absent)["torch"] == "error"
    assert "torch" not in levels(tmp_path, hardware=GPUS)


def test_bf16_is_refused_before_ampere_and_unsaid_where_nobody_knows(tmp_path):
    request = RunRequest(preset="ddp_bf16")
    volta = Hardware(gpus=(gpu(0, (7, 0)),), num_cores=8)
    assert "7.0" in found(tmp_path, request, volta)["request"].sentence
    unknown = Hardware(gpus=(gpu(0, None),), num_cores=8)
    assert levels(tmp_path, request, unknown)["precision"] == "unknown"
    assert levels(tmp_path, request, GPUS)["precision"] == "fine"


def test_a_compiler_is_needed_only_to_compile(tmp_path, monkeypatch):
    request = RunRequest(preset="ddp_bf16_compiled")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert levels(tmp_path, request)["compiler"] == "warning"
    assert "compiler" not in levels(tmp_path)
    (tmp_path / "g++").write_text("#!/bin/sh\n")
    (tmp_path / "g++").chmod(0o755)
    assert levels(tmp_path, request)["compiler"] == "fine"


@pytest.fixture
def pictures(tmp_path):
    from PIL import Image

    folder = tmp_path / "pictures"
    for i in range(40):
        place = folder / ("train" if i % 4 else "val") / ("a" if i % 2 else "b")
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (6 * i, 20, 90)).save(place / f"{i:02}.png")
    return folder


def test_pictures_are_unknown_until_they_are_checked(tmp_path, pictures):
    request = RunRequest(preset="ddp", data=str(pictures), batch=4)
    assert levels(tmp_path, request)["data"] == "unknown"
    assert levels(tmp_path, request, reports=check_data)["data"] == "fine"
    next((pictures / "train" / "a").glob("*.png")).write_bytes(b"")
    bad = found(tmp_path, request, reports=check_data)["data"]
    assert (bad.level, "1 bad file" in bad.sentence) == ("warning", True)


def test_bad_files_that_are_left_out_are_no_warning(tmp_path, pictures):
    next((pictures / "train" / "a").glob("*.png")).write_bytes(b"")
    request = RunRequest(preset="ddp", data=str(pictures), batch=4)
    spec = resolve(request, CPU)
    report = check_data(spec.data)
    data = msgspec.structs.replace(spec.data, skip=tuple(report.skip))
    left_out = msgspec.structs.replace(spec, data=data)
    details = {"spec": left_out, "reports": lambda _: report}
    assert levels(tmp_path, request, **details)["data"] == "fine"


def test_nothing_usable_blocks_and_bare_classes_warn(tmp_path, pictures):
    request = RunRequest(preset="ddp", data=str(pictures), batch=4)
    report = check_data(resolve(request, CPU).data)
    counts = (
        ClassCount(name="ok", train=3, val=1), ClassCount(name="unseen", train=3, val=0),
        ClassCount(name="untrained", train=0, val=1),
    )  # fmt: skip
    bad = (BadFile(file="x.png", code="empty", reason="It is empty."),)
    spoilt = msgspec.structs.replace(report, num_usable=0, bad=bad, classes=counts)
    items = found(tmp_path, request, reports=lambda _: spoilt)
    assert items["data"].level == "error"
    assert items["classes"].level == "warning"
    assert "untrained" in items["classes"].sentence
    assert "unseen" in items["classes"].sentence
    assert "ok" not in items["classes"].sentence.split()


def test_somebody_else_on_a_chosen_gpu(tmp_path):
    foreign = Process(pid=7, name="python", user="kim", memory_bytes=38 * GB)
    ours = Process(pid=8, name="python", user="me", memory_bytes=GB, is_ours=True)
    states = (state(0, ours), state(1, foreign))
    both = found(tmp_path, RunRequest(preset="ddp"), GPUS, gpus=states)["gpus"]
    assert (both.level, "python (kim) on GPU 1" in both.sentence) == ("warning", True)
    with speaking("zh"):
        chinese = found(tmp_path, RunRequest(preset="ddp"), GPUS, gpus=states)["gpus"].sentence
    assert "python (kim)" in chinese
    assert " on " not in chinese
    first = RunRequest(preset="ddp", gpus=(0,))
    assert levels(tmp_path, first, GPUS, gpus=states)["gpus"] == "fine"
    assert levels(tmp_path, first, GPUS)["gpus"] == "unknown"


def description(peak_bytes: int) -> Description:
    """One batch of 128 takes `peak_bytes`, twice as many take twice that; 4 MB of weights."""
    profiles = tuple(
        StepProfile(
            batch=batch, step_us=(10.0,), forward_us=3.0, backward_us=6.0, optimizer_us=1.0,
            gradients=(Gradient(name="w", num_elements=1_000_000, ready_us=5.0),),
            peak_bytes=peak_bytes * batch // 128,
        )
        for batch in (128, 256)
    )  # fmt: skip
    return Description(
        t=1.0, key="", model="resnet50", num_classes=53, image_size=32, precision="no",
        compile=False, channels_last=True, optimizer="adamw", device_name="H200",
        num_parameters=1_000_000, parameter_bytes=4_000_000, buffer_bytes=0,
        optimizer_state_bytes=8_000_000, profiles=profiles,
        versions={"torch": "2.11.0+cu130"},
    )  # fmt: skip


def stored(root, hardware, request, peak_bytes):
    key = key_of_model(resolve(request, hardware))
    Store(root).save(msgspec.structs.replace(description(peak_bytes), key=key))


def test_memory_is_predicted_against_what_is_free(tmp_path):
    request = RunRequest(preset="single", batch=128)
    states = (state(0), state(1))
    assert levels(tmp_path, request, GPUS, gpus=states)["memory"] == "unknown"
    stored(tmp_path, GPUS, request, 50 * GB)
    assert levels(tmp_path, request, GPUS, gpus=states)["memory"] == "fine"
    full = found(tmp_path, request, GPUS, gpus=(state(0, used=120 * GB),))["memory"]
    assert full.level == "warning"
    assert "46.6 GiB predicted" in full.sentence  # 50e9 / 2**30


def test_who_waits_finds_the_memory_of_our_runs_free(tmp_path):
    stored(tmp_path, GPUS, RunRequest(preset="single", batch=128), 50 * GB)
    ours = Process(pid=8, memory_bytes=119 * GB, is_ours=True)
    states = (state(0, ours, used=120 * GB),)
    for queue, level in ((False, "warning"), (True, "fine")):
        request = RunRequest(preset="single", batch=128, queue=queue)
        assert levels(tmp_path, request, GPUS, gpus=states)["memory"] == level


def test_shared_memory_holds_the_batches_of_all_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_memory, "shared_memory", lambda: (64 * 2**20, 60 * 2**20))
    assert "shared-memory" not in levels(tmp_path)  # no worker on a CPU unless asked for
    spec = resolve(RunRequest(preset="ddp", image_size=224), GPUS)
    # Two ranks, 32 batches of 128 pictures of 224 x 224 x 3 bytes, and NCCL.
    assert shared_memory.bytes_of(spec) == 2 * 32 * 128 * 224 * 224 * 3 + 2 * 10_000_000
    large = RunRequest(preset="ddp", image_size=224)
    assert levels(tmp_path, large, GPUS)["shared-memory"] == "warning"
    assert levels(tmp_path, RunRequest(preset="ddp"), GPUS)["shared-memory"] == "fine"  # 32 px
    workers = RunRequest(preset="ddp", overrides={"num_workers": "2"})
    assert "shared-memory" in levels(tmp_path, workers)


@pytest.mark.parametrize(
    ("free", "level"), [(10**6, "error"), (2 * 10**8, "warning"), (3 * 2**30, "fine")]
)
def test_the_disk_holds_what_an_earlier_run_took(tmp_path, monkeypatch, free, level):
    run = RunDir(tmp_path / "20260101-000000-calm-otter")
    (run.checkpoints / "last").mkdir(parents=True)
    run.write(run.spec, resolve(RunRequest(preset="ddp", epochs=9), CPU))
    (run.checkpoints / "last" / "model.safetensors").write_bytes(b"x" * 3_000_000)
    (run.checkpoints / "last" / "training.pt").write_bytes(b"x" * 6_000_000)
    need = disk.checkpoint_bytes(tmp_path, resolve(RunRequest(preset="fsdp"), CPU))
    assert need == 3_000_000 + 2 * 9_000_000  # best, last, and one being written
    other = resolve(RunRequest(preset="ddp", model="resnet18"), CPU)
    assert disk.checkpoint_bytes(tmp_path, other) is None
    monkeypatch.setattr(disk, "disk_bytes", lambda _: (10**12, free))
    assert levels(tmp_path)["disk"] == level


def test_variables_of_nccl_do_nothing_on_a_cpu(tmp_path):
    variables = {"NCCL_P2P_DISABLE": "1", "OMP_NUM_THREADS": "4"}
    assert levels(tmp_path, environment=variables)["environment"] == "fine"
    said = found(tmp_path, hardware=GPUS, environment=variables)["environment"]
    assert (said.level, "NCCL_P2P_DISABLE=1" in said.sentence) == ("warning", True)
    typo = found(tmp_path, environment={"GLOO_SOCKET_IFNAM": "lo"})["environment"]
    assert "Is GLOO_SOCKET_IFNAME meant?" in typo.sentence


@pytest.fixture
def holder(tmp_path):
    """A run of this very process that holds GPU 0, and one that holds the CPU."""

    def hold(hardware, name):
        run = RunDir(tmp_path / f"20260101-000000-{name}")
        for folder in (run.path, run.ranks, run.requests):
            folder.mkdir(parents=True)
        request = RunRequest(preset="ddp" if not hardware.gpus else "single")
        run.write(run.spec, resolve(request, hardware))
        write_owner(run, "supervisor")

    return hold


def test_beside_a_run_on_a_gpu_only_when_asked_for(tmp_path, holder):
    holder(GPUS, "amber-fox")
    refused = found(tmp_path, hardware=GPUS)["beside"]
    assert (refused.level, "amber-fox" in refused.sentence) == ("error", True)
    for asked, level in (({"queue": True}, "fine"), ({"beside": True}, "warning")):
        request = RunRequest(preset="ddp", **asked)
        assert levels(tmp_path, request, GPUS)["beside"] == level
    assert levels(tmp_path, RunRequest(preset="ddp", gpus=(1,)), GPUS)["beside"] == "fine"


def test_beside_a_run_on_a_cpu_is_a_warning_and_a_paused_queue_too(tmp_path, holder):
    holder(CPU, "amber-fox")
    assert levels(tmp_path)["beside"] == "warning"
    waiting = RunRequest(preset="ddp", queue=True)
    assert "amber-fox" in found(tmp_path, waiting)["beside"].sentence
    change_order(tmp_path, platform.node(), lambda _: Order(is_paused=True))
    assert levels(tmp_path, waiting)["beside"] == "warning"


def test_a_run_of_a_newer_ringside_stands_in_nobody_s_way(tmp_path, holder):
    holder(CPU, "amber-fox")
    (spec,) = tmp_path.glob("*/spec.json")
    spec.write_text(json.dumps(json.loads(spec.read_text()) | {"format": 99}))
    assert levels(tmp_path)["beside"] == "fine"


def test_errors_block_and_warnings_have_to_be_accepted(tmp_path):
    wrong = preflight(look(RunRequest(preset="ddp", epochs=0), CPU, tmp_path))
    with pytest.raises(SpecError, match="epochs must be at least 1"):
        wrong.require({"environment", "request"})
    variables = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    case = look(RunRequest(preset="ddp"), CPU, tmp_path, environment=variables)
    with pytest.raises(SpecError, match="TORCH_DISTRIBUTED_DEBUG"):
        preflight(case).require(set())
    preflight(case).require({"environment"})


def test_what_was_accepted_is_kept_once_and_in_english(tmp_path):
    run = RunDir(tmp_path / "20260101-000000-calm-otter")
    run.path.mkdir()
    assert kept_of(run) is None
    variables = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
    case = look(RunRequest(preset="ddp"), CPU, tmp_path, environment=variables)
    with speaking("zh"):
        keep(run, record_of(case, {"environment", "disk", "no-such"}))
        keep(run, record_of(case, set()))
    kept = kept_of(run)
    assert kept.accepted == ("environment",)
    assert [item.code for item in kept.accepted_items] == ["environment"]
    assert all(item.sentence.isascii() for item in kept.items)
