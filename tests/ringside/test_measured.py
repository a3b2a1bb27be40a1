"""What a card promises: only what was measured, with this preset, on this hardware."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from app.page.draw.train import strategy_cards
from app.views.form import strategies
from ringside.file_cache import FileCache, signature_of, version_of
from ringside.hardware import Gpu, Hardware
from ringside.presets import Library, load_preset
from ringside.request import RunRequest, resolve
from ringside.run import fold_run
from ringside.shelf import measured as module
from ringside.shelf.measured import (
    measured,
    measured_here,
    measured_words,
    median_limits,
    trials,
    words_of,
)
from ringside.shelf.route import route_of_run

HERE = Hardware(num_cores=4)
LAB = Path(__file__).parents[1] / "nccl_log"


@pytest.fixture
def ddp():
    return Library().get("ddp")


@pytest.fixture
def train(write_run):
    """`train("ddp", 1, step_s=0.05)`: a finished run of a preset as `ringside run` resolves it."""

    def run(preset, number, *, step_s=0.1, auc=0.8, changes=None, processes=None, **fields):
        request = RunRequest(
            preset=preset, data="emoji", model="resnet50", epochs=3, batch=64,
            processes=processes or (1 if preset == "single" else 2), overrides=changes or {},
        )  # fmt: skip
        spec = resolve(request, HERE)
        run_id = f"20260101-{number:06d}-calm-fox"
        return write_run(spec, run_id, step_s=step_s, auc_macro=auc, **fields)

    return run


def test_medians_and_limits_over_the_runs(train, root, ddp):
    train("single", 1)
    for number, step_s in enumerate((0.05, 0.0625, 0.04, 0.05, 0.05, 0.055, 0.045)):
        train("ddp", 10 + number, step_s=step_s, auc=0.8 + 0.001 * (number - 3))
    (found,) = measured(ddp, trials(root))
    assert (found.num_runs, found.num_scored) == (7, 7)
    assert found.speedup == pytest.approx(2.0)
    assert (found.speedup_low, found.speedup_high) == pytest.approx((1.6, 2.5))
    assert found.auc_delta == pytest.approx(0.0, abs=1e-12)
    assert (found.auc_low, found.auc_high) == pytest.approx((-0.003, 0.003))
    assert words_of(found) == (
        "on 2 x cpu over gloo: 2.00x (1.60 to 2.50, strong scaling), AUC +0.000 (95 % -0.003 to "
        "+0.003); measured 7 times, last on 1970-01-01 (resnet50, emoji)"
    )


def test_nobody_measured_nothing_is_promised(train, root, ddp):
    assert (trials(root), measured_words(ddp, HERE, root)) == ([], "")
    train("ddp", 1)  # without a baseline
    train("single", 2, state="failed")
    assert measured(ddp, trials(root)) == []


def test_a_run_with_other_settings_is_no_run_of_the_preset(train, root, ddp, tmp_path):
    train("single", 1, changes={"weight_decay": "0.1"})
    train("ddp", 2, changes={"weight_decay": "0.1"})
    assert len(trials(root)) == 1
    assert measured(ddp, trials(root)) == []


def test_what_an_older_version_of_the_preset_did_is_not_told_of_the_new_one(train, root, tmp_path):
    train("single", 1)
    train("ddp", 2, step_s=0.05)
    path = tmp_path / "ddp.yaml"
    text = Path(Library().get("ddp").path).read_text()
    path.write_text(text)
    assert len(measured(load_preset(path), trials(root))) == 1
    path.write_text(f"{text}\ntraining: {{clip_norm: 2}}\n")
    assert measured(load_preset(path), trials(root)) == []


def test_only_what_fits_this_machine_stands_on_its_card(train, root, ddp):
    train("single", 1)
    train("ddp", 2, step_s=0.05)
    train("ddp", 3, step_s=0.03, processes=4)
    found = trials(root)
    assert measured_here(ddp, HERE, found).fingerprint.num_devices == 4
    assert measured_here(ddp, Hardware(num_cores=2), found).fingerprint.num_devices == 2
    gpu = Gpu(index=0, name="NVIDIA H200", uuid="x", memory_total_bytes=1, memory_used_bytes=0)
    assert measured_here(ddp, Hardware(gpus=(gpu, gpu), num_cores=9), found) is None
    cards = strategies(HERE, root=root)
    drawn = strategy_cards(cards, "ddp")
    assert drawn.count("measured on 4 x cpu over gloo: 3.33x") == 1
    assert "over gloo:" not in strategy_cards(strategies(HERE), "ddp")


def test_a_new_baseline_changes_what_is_known_already(train, root, ddp):
    train("single", 1)
    train("ddp", 2, step_s=0.05)
    assert measured(ddp, trials(root))[0].speedup == pytest.approx(2.0)
    train("single", 3, step_s=0.15)
    assert measured(ddp, trials(root))[0].speedup == pytest.approx(3.0)


def test_what_has_ended_is_folded_once(train, root, monkeypatch):
    train("single", 1)
    train("ddp", 2, step_s=0.05)
    before = trials(root)
    folded = []
    monkeypatch.setattr(module, "fold_run", lambda run: folded.append(run.id) or fold_run(run))
    assert trials(root) == before
    assert folded == []
    train("ddp", 3, step_s=0.04)
    assert len(trials(root)) == 2
    assert [name[9:15] for name in folded] == ["000001", "000003"]


def test_a_page_does_not_wait_for_runs_that_were_never_looked_at(train, root):
    train("single", 1)
    for number in range(2, 6):
        train("ddp", number)
    assert trials(root, within_s=-1.0) == []
    assert len(trials(root)) == 4
    train("single", 6, step_s=0.2)
    assert trials(root, within_s=-1.0) == [], "what was against another baseline is not told"


def test_limits_of_the_median_hold_it(train):
    assert median_limits([0.0] * 5) is None, "1 - 2 / 2^5 is below 95 %"
    assert median_limits([5.0, 1.0, 2.0, 3.0, 4.0, 6.0]) == (1.0, 6.0)
    for n in (6, 9, 20):
        low, high = median_limits([float(i) for i in range(1, n + 1)])
        r = int(low)
        assert (n - r + 1) == high
        assert 1 - 2 * stats.binom.cdf(r - 1, n, 0.5) >= 0.95 > 1 - 2 * stats.binom.cdf(r, n, 0.5)
    rng = np.random.default_rng(0)
    held = [
        low <= 0 <= high
        for low, high in (median_limits(rng.standard_cauchy(12).tolist()) for _ in range(2000))
    ]
    assert np.mean(held) >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 2000)


def test_the_way_between_devices_comes_from_the_log_of_the_run(train):
    run = train("ddp", 1)
    assert (route_of_run(run, "gloo"), route_of_run(run, "nccl")) == ("gloo", None)
    run.nccl.mkdir()
    (run.nccl / "rank0.log").write_text("no line of NCCL\n")
    assert route_of_run(run, "nccl") is None


# --- the cache --------------------------------------------------------------------------------


def test_a_value_counts_as_long_as_its_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")
    cache = FileCache("numbers", int)
    cache.put(path, 1, signature_of(path))
    cache.save()
    assert FileCache("numbers", int).get(path) == 1
    assert FileCache("numbers", str).get(path) is None, "what holds something else is not read"
    path.write_text("other")
    assert FileCache("numbers", int).get(path) is None
    path.unlink()
    assert FileCache("numbers", int).get(path) is None


def test_a_cache_that_cannot_be_used_costs_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("one")
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(path))  # no folder
    cache = FileCache("numbers", int)
    cache.put(path, 1, signature_of(path))
    cache.save()
    assert cache.get(path) == 1
    assert FileCache("numbers", int).get(path) is None


def test_other_code_is_noticed_though_no_file_is_newer_than_the_newest(tmp_path):
    """Copies keep their times: a mended file may be older than one that was not touched."""
    for name, t in (("a.py", 1000), ("b.py", 3000)):
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (t, t))
    before = version_of(tmp_path)
    assert version_of(tmp_path) == before
    os.utime(tmp_path / "a.py", (2000, 2000))
    assert version_of(tmp_path) != before


def test_a_preset_that_was_edited_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("RINGSIDE_LIBRARY", os.fspath(tmp_path))
    text = "about: {title: %s, why: w, when: w}\naccelerate: {distributed_type: MULTI_GPU}\n"
    path = tmp_path / "warm.yaml"
    path.write_text(text % "A")
    assert Library().get("warm").about.title == "A"
    path.write_text(text % "Other")
    assert Library().get("warm").about.title == "Other"
    path.write_text("about: {}\n")
    assert [fault for fault in Library().faults if "warm.yaml" in str(fault)]
