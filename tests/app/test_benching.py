"""`ringside bench`: steps of presets side by side, with what each is compared with."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from ringside.errors import LaunchError
from ringside.hardware import Hardware
from ringside.launch.step_bench import TimedStep
from ringside.measurements import Arm, StepTiming
from ringside.measurements.store import FOLDER, Store, key_of_spec
from ringside.rundir import runs_root

CLONE = Path(__file__).parents[2]
MACHINE = Hardware(num_cores=2)
ASKED = ("--data", "products:ci", "--batch", "64", "--processes", "2", "--seconds", "2")
BLOCKS = (0.9, 1.0, 1.0, 1.0, 1.1)


@pytest.fixture
def steps(monkeypatch):
    """`steps(ddp=20.0, …)`: milliseconds by preset, or an error; returns what was launched."""
    launched = []

    def time_them(**by_preset):
        def measure(spec, hardware, *, seconds, decoder, synthetic):
            precision = spec.accelerate.mixed_precision
            launched.append((spec.preset, precision, spec.micro_batch, decoder, synthetic, seconds))
            given = by_preset.get(f"{spec.preset}_{precision}", by_preset.get(spec.preset))
            if isinstance(given, BaseException):
                raise given
            arm = Arm(
                name="many", num_processes=spec.num_processes, data_ms=0.01 * given,
                step_ms=tuple(given * ratio for ratio in BLOCKS), decoder="cpu",
            )  # fmt: skip
            return StepTiming(t=1.0, key=key_of_spec(spec), spec=spec, device_name="cpu", arm=arm)

        monkeypatch.setattr("ringside.launch.step_bench.measure_step", measure)
        monkeypatch.setattr("app.commands.benching.read_hardware", lambda: MACHINE)
        return launched

    return time_them


def documented() -> set[str]:
    text = (CLONE / "docs" / "cli-json.md").read_text()
    section = text.partition("## `ringside bench PRESET... --json`")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_as_json(ringside, steps):
    """32 images a device: 2 x 32 in 20 ms against 32 in 16 ms are 1.6 times as many a second."""
    launched = steps(ddp=20.0, ddp_bf16=16.0, single=16.0, single_bf16=10.0)
    code, out, err = ringside("bench", "ddp", "ddp_bf16", *ASKED, "--json")
    found = json.loads(out)
    assert code == 0
    assert set(found) == {"presets", "refused"}
    assert found["refused"] == {}
    bf16, ddp, *alone = found["presets"]
    assert set(ddp) == documented() == set(TimedStep.__struct_fields__)
    assert (bf16["preset"], ddp["preset"]) == ("ddp_bf16", "ddp")
    assert (ddp["step_ms"], ddp["samples_per_s"]) == pytest.approx((20, 3_200))
    assert (ddp["speedup"], ddp["efficiency_ratio"]) == pytest.approx((1.6, 0.8))
    assert bf16["speedup"] == pytest.approx(2 * 10 / 16)
    assert ddp["data_ms"] == pytest.approx(0.2)
    # The blocks lie 10 % apart at most, and in the middle not at all.
    assert ddp["spread_ms"] == 0
    assert [(one["preset"], one["mixed_precision"]) for one in alone] == [
        ("single", "no"), ("single", "bf16")
    ]  # fmt: skip
    assert all(one["speedup"] is None for one in alone)
    # One device first; what the first launch chose as decoder the others take.
    assert [(name, precision) for name, precision, *_ in launched] == [
        ("single", "no"), ("single", "bf16"), ("ddp", "no"), ("ddp_bf16", "bf16")
    ]  # fmt: skip
    assert [decoder for *_, decoder, _, _ in launched] == [None, "cpu", "cpu", "cpu"]
    assert {(batch, synthetic, seconds) for _, _, batch, _, synthetic, seconds in launched} == {
        (32, False, 2.0)
    }
    assert err.startswith("4 launches, 2 of them one device for comparison: about 1 min. Nothing")
    assert "3 of 4: ddp, 2 devices, 32 images each; about " in err


def test_a_person_reads_what_is_slower_and_what_is_fastest(ringside, steps):
    steps(ddp=60.0, ddp_accum4=120.0, ddp_tuned=59.0, single=20.0)
    code, out, _ = ringside("bench", "ddp", "ddp_accum4", "ddp_tuned", *ASKED)
    assert code == 0
    rows = [line.split() for line in out.splitlines()[1:5]]
    assert [row[0] for row in rows] == ["ddp_accum4", "ddp_tuned", "ddp", "single"]
    assert rows[0][5:8] == ["2,133", "1.33x", "67"]
    assert "Slower than one device: ddp_tuned, ddp. `ringside doctor` finds out why." in out
    assert "ddp_accum4 is the fastest: 97 % faster than ddp_tuned." in out
    assert "Presets that accumulate have a larger global batch, and with it other scores." in out


def test_presets_within_noise_are_as_fast(ringside, steps):
    steps(ddp=20.0, ddp_tuned=20.4, single=16.0)
    _, out, _ = ringside("bench", "ddp_tuned", "ddp", *ASKED)
    assert "ddp and ddp_tuned are about equally fast: 2.0 % apart, with a spread of 0.0 %." in out
    assert "is the fastest" not in out


def test_what_fails_is_told_and_the_others_go_on(ringside, steps):
    """Without its device alone a preset is timed and has no speed-up."""
    lost, full = LaunchError("The device was lost."), LaunchError("Out of memory.")
    steps(ddp=20.0, ddp_bf16=full, single=16.0, single_bf16=lost)
    code, out, _ = ringside("bench", "ddp", "ddp_bf16", *ASKED, "--json")
    found = json.loads(out)
    assert code == 0
    assert [one["preset"] for one in found["presets"]] == ["ddp", "single"]
    assert found["refused"] == {
        "single (bf16), 32 images": "The device was lost.", "ddp_bf16": "Out of memory."
    }  # fmt: skip
    steps(ddp=20.0, single=lost)
    _, out, _ = ringside("bench", "ddp", *ASKED, "--json")
    assert json.loads(out)["presets"][0]["speedup"] is None
    steps(ddp=full, single=lost)
    assert ringside("bench", "ddp", *ASKED, "--json")[0] == 1


def test_the_fastest_may_be_one_device(ringside, steps):
    steps(ddp=60.0, fsdp=120.0, single=20.0)
    _, out, _ = ringside("bench", "ddp", "fsdp", "single", *ASKED[:2], "--batch", "64")
    assert "Slower than one device: ddp, fsdp." in out
    assert "single is the fastest" in out
    assert "accumulate" not in out


def test_a_decoder_that_was_asked_for_is_not_another_ones(ringside, steps):
    """What the first launch chose is for those that left it open."""
    launched = steps(ddp=20.0, single=16.0)
    ringside("bench", "ddp", *ASKED, "--set", "decoder=cpu")
    assert [decoder for *_, decoder, _, _ in launched] == [None, None]


def test_what_was_timed_stands_when_it_is_cut_short(ringside, steps):
    steps(ddp=KeyboardInterrupt(), single=16.0)
    code, out, err = ringside("bench", "ddp", *ASKED, "--json")
    assert code == 130
    assert [one["preset"] for one in json.loads(out)["presets"]] == ["single"]
    assert "Cut short; what was timed stands." in err
    (kept,) = (runs_root() / FOLDER).iterdir()
    assert msgspec.json.decode(kept.read_bytes(), type=StepTiming).spec.preset == "single"


def test_what_cannot_be_kept_is_printed_all_the_same(ringside, steps):
    steps(ddp=20.0, single=16.0)
    runs_root().mkdir(parents=True, exist_ok=True)
    (runs_root() / FOLDER).write_text("in the way")
    code, out, err = ringside("bench", "ddp", *ASKED, "--json")
    assert (code, len(json.loads(out)["presets"])) == (0, 2)
    assert "cannot be written" in err


def test_mistakes_are_one_sentence(ringside, steps):
    steps(ddp=20.0, single=16.0)
    code, out, err = ringside("bench", "dpp", *ASKED)
    assert (code, out) == (2, "")
    assert "dpp" in err
    _, out, _ = ringside("bench", "ddp", "ddp_fp16", *ASKED, "--json")
    assert "needs a GPU" in json.loads(out)["refused"]["ddp_fp16"]


def test_nothing_is_timed_beside_a_run(ringside, steps, write_run, make_spec):
    launched = steps(ddp=20.0, single=16.0)
    write_run(make_spec("ddp"), "20260102-030402-calm-otter", state=None)
    code, out, err = ringside("bench", "ddp", *ASKED)
    assert (code, out, launched) == (2, "", [])
    assert err.startswith("calm-otter uses the devices of this machine")


@pytest.mark.distributed
def test_two_real_processes_and_one(ringside):
    """With made-up images, so that nothing waits for any; the ranks reduce what they compute."""
    asked = ("--model", "test_resnet", "--image-size", "32", "--batch", "8", "--processes", "2")
    code, out, err = ringside(
        "bench", "ddp", *asked, "--data", "synthetic:64", "--seconds", "1", "--json"
    )
    assert code == 0, err
    ddp, single = json.loads(out)["presets"]
    assert (ddp["preset"], ddp["num_devices"], ddp["micro_batch"]) == ("ddp", 2, 4)
    assert (single["preset"], single["num_devices"], single["micro_batch"]) == ("single", 1, 4)
    assert ddp["speedup"] == pytest.approx(ddp["samples_per_s"] / single["samples_per_s"], rel=1e-6)
    assert ddp["data_ms"] is None
    assert ddp["step_ms"] > 0 < single["step_ms"]
    files = sorted((runs_root() / FOLDER).iterdir())
    kept = [msgspec.json.decode(file.read_bytes(), type=StepTiming) for file in files]
    assert {one.arm.name for one in kept} == {"many_synthetic"}
    for one in kept:
        assert Store(runs_root()).timing(one.spec, one.device_name) == one
