"""The command of a finding asks for the same run but for what it changes."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from app import cli
from ringside.doctor import Case, diagnose
from ringside.doctor.applying import command_for, compiled, estimate_command, request_command
from ringside.doctor.checks import launch_small_batch, link_wide_gradients
from ringside.doctor.findings import Finding
from ringside.hardware import Gpu, Hardware
from ringside.measurements.store import key_of_spec
from ringside.request import RunRequest, resolve
from ringside.speedup import baseline_of

from tests.doctor.making import description, facts, record, request  # isort: skip

GPUS = tuple(
    Gpu(
        index=n, name="H200", uuid=f"GPU-{n}", memory_total_bytes=1, memory_used_bytes=0,
        compute_capability=(9, 0),
    )
    for n in range(2)
)  # fmt: skip
MACHINE = Hardware(gpus=GPUS, num_cores=16)
FINDING = Finding(
    code="LINK-001", cause="link", severity="critical", sentence="", confidence="high",
    refutation="", next_step="",
)  # fmt: skip


@pytest.fixture
def asked(monkeypatch):
    """What a command line asks for, resolved on a machine with two GPUs."""

    def ask(words):
        found = []
        monkeypatch.setattr(
            "app.commands.running.start", lambda given, **_: found.append(given) or 0
        )
        with pytest.raises(SystemExit):
            cli.main(words)
        return resolve(found[0], MACHINE)

    return ask


def bare(spec):
    """A request without the note of where each value came from."""
    return msgspec.structs.replace(spec, sources={}, request_id=None)


def table(tmp_path):
    """A folder with a table of labels, for `--separator`."""
    from PIL import Image

    rows = ["file,labels"]
    for number in range(60):
        Image.new("RGB", (8, 8)).save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,{'a;b' if number % 2 else 'b'}")
    (tmp_path / "labels.csv").write_text("\n".join(rows))
    return str(tmp_path / "labels.csv")


REQUESTS = {
    "everything": {
        "preset": "ddp", "processes": 2, "keep_global_batch": True, "batch": 512, "profile": 4,
        "image_size": 64, "seed": 5, "epochs": 7,
        "overrides": {
            "accumulation_steps": "4", "mixed_precision": "bf16", "num_workers": "3",
            "environment.NCCL_ALGO": "Ring",
        },
    },
    "grown": {"preset": "ddp", "overrides": {"accumulation_steps": "4", "clip_norm": "0.5"}},
    "fsdp": {"preset": "fsdp", "overrides": {"fsdp_reshard_after_forward": "false"}},
    "data_parallel": {"preset": "data_parallel", "processes": 2},
    "pipeline": {"preset": "model_parallel"},
    "one": {"preset": "single"},
}  # fmt: skip


@pytest.mark.parametrize("name", REQUESTS)
def test_the_command_of_a_request_asks_for_it_again(asked, name):
    spec = resolve(RunRequest(**REQUESTS[name]), MACHINE)
    assert bare(asked(shlex.split(request_command(spec))[1:])) == bare(spec)


def test_the_separator_of_labels_stays(asked, tmp_path):
    spec = resolve(RunRequest(preset="ddp", data=table(tmp_path), separator=";"), MACHINE)
    assert bare(asked(shlex.split(request_command(spec))[1:])) == bare(spec)


def test_a_remedy_changes_one_setting(asked):
    spec = resolve(RunRequest(**REQUESTS["everything"]), MACHINE)
    finding = msgspec.structs.replace(FINDING, preset="ddp", overrides={"comm_hook": "bf16"})
    wanted = msgspec.structs.replace(
        spec, training=msgspec.structs.replace(spec.training, comm_hook="bf16")
    )
    assert bare(asked(shlex.split(command_for(finding, spec))[1:])) == bare(wanted)


def test_without_variables_the_request_is_the_same(asked):
    spec = resolve(RunRequest(**REQUESTS["everything"]), MACHINE)
    finding = msgspec.structs.replace(FINDING, unset=("NCCL_P2P_DISABLE", "NCCL_ALGO"))
    words = shlex.split(command_for(finding, spec))
    assert words[:5] == ["env", "-u", "NCCL_P2P_DISABLE", "-u", "NCCL_ALGO"]
    wanted = msgspec.structs.replace(spec, environment={})  # NCCL_ALGO came with --set
    assert bare(asked(words[6:])) == bare(wanted)


def test_the_run_of_one_device_can_be_asked_for(asked):
    spec = resolve(RunRequest(**REQUESTS["everything"]), MACHINE)
    wanted = baseline_of(spec)
    assert bare(asked(shlex.split(request_command(wanted))[1:])) == bare(wanted)


@pytest.mark.parametrize("name", REQUESTS)
def test_the_estimate_measures_the_step_of_the_run(monkeypatch, name):
    """Of another precision or image size the description would not fit."""
    spec = resolve(RunRequest(**REQUESTS[name]), MACHINE)
    found = []
    monkeypatch.setattr("app.commands.estimating.run", lambda asked, **_: found.append(asked) or 0)
    with pytest.raises(SystemExit):
        cli.main(shlex.split(estimate_command(spec))[1:])
    request = msgspec.structs.replace(found[0].request, preset=found[0].presets[0])
    own = resolve(request, MACHINE)
    assert found[0].measure
    assert (key_of_spec(own), own.micro_batch) == (key_of_spec(spec), spec.micro_batch)


def test_a_slow_host_gets_a_compiled_model_and_nothing_else(asked):
    spec = resolve(RunRequest(preset="ddp", batch=128), MACHINE)
    case = Case(record=record(spec), description=description(host_us=22e3, device_us=11e3))
    finding = launch_small_batch.check(case)
    assert (finding.preset, finding.overrides) == ("ddp", compiled(spec, replays=True).overrides)
    found = asked(shlex.split(command_for(finding, spec))[1:])
    assert found.accelerate.mixed_precision == "no"
    assert found.training.compile


def test_wide_gradients_get_a_hook_in_their_own_preset():
    spec = request("ddp_bf16", precision="bf16")
    finding = link_wide_gradients.check(
        Case(record=record(spec), facts=facts(compute=0.5, exposed_transfer=0.3))
    )
    assert (finding.preset, finding.overrides) == ("ddp_bf16", {"comm_hook": "bf16"})


def test_accumulation_with_the_batch_kept_is_not_proposed():
    """It would not exchange less for each image."""
    settings = {"accumulation_steps": 4, "comm_hook": "bf16"}
    spec = request(batch=512, settings=settings, keeps_global_batch=True)
    slow = facts(compute=0.4, exposed_transfer=0.4)
    finding = diagnose(Case(record=record(spec), facts=slow)).verdict
    assert (finding.code, finding.preset) == ("LINK-001", None)
