"""`ringside estimate`: what scripts rely on, and what a person reads."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from ringside.errors import LaunchError
from ringside.estimate import Estimate
from ringside.events import WindowTimed
from ringside.hardware import Hardware
from ringside.measurements import Crowded, Description, Gradient, Point, Series, StepProfile, Sweep
from ringside.measurements.store import Store, key_of_machine, key_of_model
from ringside.request import RunRequest, resolve

CLONE = Path(__file__).parents[2]
KEYS = {
    "preset", "num_devices", "micro_batch", "global_batch", "step_ms", "step_ms_low",
    "step_ms_high", "epoch_time_s", "samples_per_s", "speedup", "memory_bytes", "exposed_ratio",
    "gain_ratio", "num_bytes", "parts", "memory_parts", "confidence", "missing", "notes",
}  # fmt: skip
HARDWARE = Hardware(num_cores=2)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    """The command runs on a machine of two cores."""
    monkeypatch.setattr("app.commands.estimating.read_hardware", lambda: HARDWARE)


def a_description() -> Description:
    """16 ms for 32 images; 4 MB of gradients are ready when backward ends."""
    gradients = (Gradient(name="fc.weight", num_elements=1_000_000, ready_us=10_000.0),)
    profiles = tuple(
        StepProfile(
            batch=batch, step_us=(500.0 * batch,), forward_us=156.25 * batch,
            backward_us=312.5 * batch, optimizer_us=31.25 * batch, gradients=gradients,
        )
        for batch in (16, 32)
    )  # fmt: skip
    return Description(
        t=1.0, key="", model="resnet50", num_classes=12, image_size=32,
        precision="no", compile=False, channels_last=True, optimizer="adamw",
        device_name="cpu", num_parameters=1_000_000, parameter_bytes=4_000_000,
        buffer_bytes=0, optimizer_state_bytes=8_000_000, profiles=profiles,
    )  # fmt: skip


def a_sweep() -> Sweep:
    """An all-reduce of a megabyte takes 1 ms."""
    points = tuple(
        Point(num_bytes=size, median_us=size / 1e3, p90_us=size / 1e3, repeats=5)
        for size in (2**14, 2**26)
    )
    series = Series(
        operation="all_reduce", dtype="fp32", backend="gloo", num_ranks=2, points=points
    )
    return Sweep(t=1.0, key="", device_name="cpu", num_ranks=2, series=(series,))


@pytest.fixture
def measured(root):
    """Both in the store of this machine."""
    spec = resolve(RunRequest(preset="ddp", data="products:ci", batch=64), HARDWARE)
    store, replace = Store(root), msgspec.structs.replace
    store.save(replace(a_description(), key=key_of_model(spec)))
    store.save(replace(a_sweep(), key=key_of_machine(HARDWARE, 2, os.environ)))


def documented() -> set[str]:
    text = (CLONE / "docs" / "cli-json.md").read_text()
    section = text.partition("## `ringside estimate PRESET... --json`")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


ASKED = ("estimate", "single", "ddp", "--data", "products:ci", "--batch", "64", "--processes", "2")


def test_as_json(ringside, measured):
    """Of two processes with 32 images each, DDP sends 4 MB when backward has ended."""
    code, out, _ = ringside(*ASKED[:1], "ddp", *ASKED[3:], "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"presets", "refused"}
    assert found["refused"] == {}
    (ddp,) = found["presets"]
    assert set(ddp) == KEYS == documented() == set(Estimate.__struct_fields__) - {"format"}
    assert ddp["preset"] == "ddp"
    assert ddp["step_ms"] == pytest.approx(20)
    assert ddp["samples_per_s"] == pytest.approx(3_200)
    assert ddp["speedup"] == pytest.approx(1.6)
    assert ddp["exposed_ratio"] == pytest.approx(0.2)
    assert ddp["gain_ratio"] == pytest.approx(0.2)
    assert ddp["epoch_time_s"] > 0
    assert ddp["memory_bytes"] is None


def test_the_fastest_comes_first(ringside, measured):
    """`single` is asked for two processes, which it cannot have; the others are told apart."""
    asked = (*ASKED[:1], "ddp", "local_sgd", "ddp_bf16", *ASKED[1:2], *ASKED[3:])
    code, out, _ = ringside(*asked, "--json")
    found = json.loads(out)
    assert code == 0
    assert [one["preset"] for one in found["presets"]] == ["local_sgd", "ddp", "ddp_bf16"]
    assert found["presets"][2]["step_ms"] is None
    assert "single" in found["refused"]


def test_for_people(ringside, measured):
    code, out, _ = ringside("estimate", "ddp", "ddp_bf16", *ASKED[3:])
    assert code == 0
    assert re.search(r"ddp\s+20\.0\s+\[\S+ to \S+\]\s+\S+ s\s+3,200\s+1\.60x\s+20 %\s+20 %", out)
    assert re.search(r"^not said: .*one device.*\(ddp_bf16\)$", out, re.MULTILINE)
    assert "--data-rate" in out


def test_images_that_come_slowly_are_the_bound(ringside, measured):
    _, out, _ = ringside("estimate", "ddp", *ASKED[3:], "--data-rate", "640", "--json")
    assert json.loads(out)["presets"][0]["step_ms"] == pytest.approx(100)


def test_without_measurements_there_is_no_number(ringside):
    code, out, _ = ringside("estimate", "ddp", *ASKED[3:], "--json")
    (ddp,) = json.loads(out)["presets"]
    assert code == 1
    assert ddp["step_ms"] is ddp["speedup"] is ddp["epoch_time_s"] is None
    assert "--measure" in ddp["missing"][0]


def test_a_run_that_measured_nothing_corrects_nothing(ringside, measured, make_spec, write_run):
    write_run(make_spec("ddp"), "20260101-000000-calm-otter")
    code, _, err = ringside("estimate", "ddp", *ASKED[3:], "--like", "calm-otter")
    assert code == 2
    assert "calm-otter cannot correct an estimate" in err


def test_an_unknown_preset_is_one_sentence(ringside):
    code, _, err = ringside("estimate", "dpp", *ASKED[3:])
    assert code == 2
    assert "dpp" in err


def test_what_is_missing_is_measured_once(ringside, root, monkeypatch):
    """A second preset of the same model and ranks finds what the first one made."""
    asked = []

    def describe(spec, hardware, *, say):
        asked.append(("description", spec.micro_batch))
        return msgspec.structs.replace(a_description(), key=key_of_model(spec), t=2.0)

    def sweep(hardware, num_ranks, *, environment, trials, say, sizes):
        asked.append(("sweep", num_ranks, *sizes))
        return msgspec.structs.replace(a_sweep(), key=key_of_machine(hardware, 2, os.environ))

    def crowd(spec, *, say):
        asked.append(("crowd", spec.num_processes))
        return Crowded(num_processes=2, batch=32, step_us=(16_000.0,))

    monkeypatch.setattr("ringside.launch.crowd.measure_crowd", crowd)
    monkeypatch.setattr("ringside.launch.probing.measure_description", describe)
    monkeypatch.setattr("ringside.launch.probing.measure_sweep", sweep)
    arguments = ("estimate", "ddp", "ddp_tuned", *ASKED[3:], "--measure", "--json")
    code, out, _ = ringside(*arguments)
    assert code == 0
    assert asked == [("description", 32), ("crowd", 2), ("sweep", 2, 4_000_000)]
    assert all(one["step_ms"] for one in json.loads(out)["presets"])


def test_nothing_is_measured_beside_a_run(ringside, write_run, make_spec):
    write_run(make_spec("ddp"), "20260102-030402-calm-otter", state=None)
    code, out, err = ringside(*ASKED, "--measure")
    assert (code, out) == (2, "")
    assert err.startswith("calm-otter uses the devices of this machine")


def test_one_measurement_that_fails_does_not_end_the_command(ringside, measured, monkeypatch):
    """The step of another precision cannot be measured, and is asked for once; ddp is there.

    Of PowerSGD nothing is measured, because nothing that is would tell its step.
    """
    asked = []

    def describe(spec, hardware, *, say):
        asked.append(spec.preset)
        raise LaunchError("The device was lost.")

    def crowd(spec, *, say):
        asked.append(spec.preset)
        return Crowded(num_processes=2, batch=32, step_us=(16_000.0,))

    monkeypatch.setattr("ringside.launch.crowd.measure_crowd", crowd)
    monkeypatch.setattr("ringside.launch.probing.measure_description", describe)
    names = ("ddp_bf16", "ddp_bf16_compress", "ddp", "ddp_powersgd")
    code, out, _ = ringside("estimate", *names, *ASKED[3:], "--measure", "--json")
    found = json.loads(out)
    assert code == 0
    assert asked == ["ddp_bf16", "ddp"]
    assert found["refused"] == dict.fromkeys(
        ("ddp_bf16", "ddp_bf16_compress"), "The device was lost."
    )
    steps = {one["preset"]: one["step_ms"] for one in found["presets"]}
    assert steps.pop("ddp") == pytest.approx(20)
    assert set(steps.values()) == {None}
    (powersgd,) = (one for one in found["presets"] if one["preset"] == "ddp_powersgd")
    assert "PowerSGD" in powersgd["missing"][0]


def test_a_run_that_took_too_long_to_be_explained_corrects_nothing(ringside, measured, write_run):
    spec = resolve(RunRequest(preset="ddp", data="products:ci", batch=64), HARDWARE)
    run = write_run(spec, "20260101-000000-calm-otter")
    window = WindowTimed(
        epoch=2, step=20, num_steps=10, samples_per_s=70.0, train_loss=0.5, learning_rate=0.1,
        step_ms=900.0, data_ms=0.0, forward_ms=1.0, backward_ms=1.0, optimizer_ms=1.0,
        step_ms_min=1.0, data_ms_min=0.0,
    )  # fmt: skip
    with run.events.open("ab") as events:
        events.write(msgspec.json.encode(window) + b"\n")
    code, _, err = ringside("estimate", "ddp", *ASKED[3:], "--like", "calm-otter")
    assert code == 2
    assert "took 900.0 ms a step and its replay takes 20.0 ms" in err


def test_a_started_run_says_and_keeps_what_is_predicted(
    ringside, measured, root, write_run, monkeypatch, capsys
):
    from app.commands import running

    spec = resolve(RunRequest(preset="ddp", data="products:ci", batch=64), HARDWARE)
    run = write_run(spec, "20260101-000000-calm-otter")
    monkeypatch.setattr("ringside.launch.local.start_run", lambda *_: run)
    assert running.start_spec(spec, HARDWARE, follow=False) == 0
    assert "predicted: 20.0 ms a step" in capsys.readouterr().out
    code, out, _ = ringside("show", "calm-otter")
    assert code == 0
    assert "predicted step: 20.0 ms; not measured yet" in out
    _, out, _ = ringside("show", "calm-otter", "--json")
    assert json.loads(out)["estimate"]["predicted_step_ms"] == pytest.approx(20)
