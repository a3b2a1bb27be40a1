"""Speed-ups: the number people buy machines by. Each expected value is computed by hand."""

from __future__ import annotations

import pytest

from ringside.compare import compare
from ringside.run import fold_run
from ringside.rundir import RunDir
from ringside.speedup import baseline_of, find_baseline, scaling_of, speedup, speedup_of

OLD, BASE, RUN, OTHER = (
    f"2026010{day}-000000-{name}"
    for day, name in enumerate(("old-owl", "calm-fox", "swift-hare", "warm-seal"), start=1)
)


@pytest.fixture
def measured(root, make_spec, write_run):
    """Write a baseline and a run; returns the speed-up of the run."""

    def measure(baseline: dict | None, run: dict):
        def write(run_id: str, preset: str, **fields):
            written = {
                name: fields.pop(name)
                for name in ("step_s", "epochs", "state", "device_name", "fingerprint", "decoder")
                if name in fields
            }
            return write_run(make_spec(preset, **fields), run_id, **written)

        if baseline is not None:
            write(BASE, **{"preset": "single", **baseline})
        return speedup_of(root, fold_run(write(RUN, **{"preset": "ddp", **run})))

    return measure


# --- the number -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_s", "run_s", "num_processes", "value"),
    [
        # 64 images in 0.10 s are 640/s; 4 x 64 in 0.13 s are 1969/s. Comparing the
        # seconds per step would say 0.77x.
        (0.10, 0.13, 4, 3.0769),
        # 64/0.10 = 640/s; 4 x 64 in 0.56 s are 457/s: four devices slower than one.
        (0.10, 0.56, 4, 0.7143),
        # Perfect: the same time per step on two devices.
        (0.20, 0.20, 2, 2.0),
    ],
)
def test_weak_scaling(measured, base_s, run_s, num_processes, value):
    found = measured({"step_s": base_s}, {"step_s": run_s, "num_processes": num_processes})
    assert found.value == pytest.approx(value, abs=1e-4)
    assert found.scaling == "weak"
    assert found.efficiency_ratio == pytest.approx(value / num_processes, abs=1e-4)
    assert found.baseline_id == BASE
    assert found.baseline_samples_per_s == pytest.approx(64 / base_s)
    assert found.samples_per_s == pytest.approx(64 * num_processes / run_s)
    assert found.reason is None


def test_strong_scaling_keeps_the_global_batch(measured):
    """256 images in 0.40 s on one device, 4 x 64 in 0.13 s on four: 0.40 / 0.13."""
    found = measured(
        {"step_s": 0.40, "micro_batch": 256}, {"step_s": 0.13, "num_processes": 4}
    )  # fmt: skip
    assert found.value == pytest.approx(0.40 / 0.13)
    assert found.scaling == "strong"


def test_accumulation_is_measured_against_the_same_micro_batch(measured):
    """One optimizer step of 4 micro-steps of 2 x 64 images in 0.5 s: 1024/s against 640/s."""
    found = measured({"step_s": 0.1}, {"step_s": 0.5, "training": {"accumulation_steps": 4}})
    assert (found.value, found.scaling) == (pytest.approx(1.6), "weak")


def test_fsdp_is_measured_against_the_plain_device(measured):
    """Its weights are contiguous, and its convolutions channels_last as its images are."""
    found = measured({"step_s": 0.1}, {"preset": "fsdp", "step_s": 0.125})
    assert (found.value, found.scaling) == (pytest.approx(1.6), "weak")


def test_warm_up_is_left_out_of_both(measured):
    """The first epoch of these runs takes ten times as long as the others."""
    found = measured({"step_s": 0.1, "epochs": 2}, {"step_s": 0.1, "epochs": 9})
    assert found.value == pytest.approx(2.0)


def test_weak_scaling_goes_before_strong(root, make_spec, write_run):
    """Both are measured; the sense in which the device does the same work is shown."""
    write_run(make_spec("single", micro_batch=64), OLD)
    write_run(make_spec("single", micro_batch=128), BASE)
    found = speedup_of(root, fold_run(write_run(make_spec("ddp"), RUN)))
    assert (found.scaling, found.baseline_id) == ("weak", OLD)


# --- no number --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("baseline", "run"),
    [
        (None, {}),
        ({}, {"precision": "bf16"}),
        ({"precision": "bf16"}, {}),
        ({}, {"training": {"compile": True}}),
        ({"model": "resnet18"}, {}),
        ({"data": "products"}, {}),
        ({"image_size": 64}, {}),
        ({"seed": 1}, {}),
        ({"device": "cuda"}, {}),
        ({"threads_per_device": 2}, {}),
        ({"training": {"channels_last": False}}, {}),
        ({}, {"training": {"freeze": "backbone"}}),
        ({}, {"training": {"ema_decay": 0.99}}),
        ({"training": {"optimizer": "sgd"}}, {}),
        ({"training": {"clip_norm": 0.0}}, {}),
        ({}, {"training": {"color_jitter": 0.4}}),
        ({"training": {"mixup": 0.2}}, {}),
        ({}, {"training": {"cutmix": 1.0}}),
        ({}, {"training": {"min_crop_area": 0.1}}),
        ({"training": {"save_every_steps": 10}}, {}),
        ({"training": {"num_workers": 8}}, {}),
        ({"decoder": "cpu"}, {"decoder": "gpu"}),
        ({"micro_batch": 100}, {}),
        ({"device_name": "NVIDIA A100"}, {"device_name": "NVIDIA H200"}),
        ({"fingerprint": "other images"}, {}),
        ({"preset": "ddp", "num_processes": 1}, {}),
        ({"epochs": 1, "state": "failed"}, {}),
        ({"epochs": 0, "state": "failed"}, {}),
    ],
    ids=str,
)
def test_without_a_matching_baseline_there_is_no_number(measured, baseline, run):
    found = measured(baseline, run)
    assert (found.value, found.scaling, found.efficiency_ratio) == (None, None, None)
    assert found.baseline_id is None
    assert "run `single` at these settings" in found.reason
    assert found.samples_per_s == pytest.approx(1280)


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"model": "resnet18"}, "model: resnet50 and resnet18"),
        ({"precision": "bf16"}, "precision"),
        ({"micro_batch": 100}, "batch"),
        ({"training": {"freeze": "backbone"}}, "freeze: no and backbone"),
    ],
)
def test_a_baseline_that_does_not_fit_is_not_divided_by(make_spec, write_run, fields, part):
    """Whoever hands over the wrong run gets the difference, not a number."""
    run = fold_run(write_run(make_spec("ddp"), RUN))
    wrong = fold_run(write_run(make_spec("single", **fields), BASE))
    found = speedup(run, wrong)
    assert found.value is None
    assert part in found.reason


def test_a_run_that_is_nearly_a_baseline_is_named_with_what_differs(measured):
    found = measured({"training": {"channels_last": False}}, {})
    assert found.value is None
    assert found.reason.endswith("differs in channels_last: True and False")


@pytest.mark.parametrize(
    ("baseline", "why"),
    [
        # As many images per step as two devices have are no obstacle: that is strong scaling.
        (
            {"micro_batch": 128, "training": {"save_every_steps": 2}},
            "differs in save_every_steps: none and 2",
        ),
        ({"micro_batch": 96}, "differs in batch: 64 and 96"),
    ],
    ids=str,
)
def test_only_obstacles_are_named_and_none_is_a_word(measured, baseline, why):
    assert measured(baseline, {}).reason.endswith(why)


def test_a_run_that_measured_nothing_is_not_named_as_nearly_a_baseline(root, make_spec, write_run):
    write_run(make_spec("single", seed=1), OLD)
    write_run(make_spec("single", micro_batch=96), BASE, epochs=0, state="failed")
    found = speedup_of(root, fold_run(write_run(make_spec("ddp"), RUN)))
    assert "calm-fox" not in found.reason
    assert found.reason.endswith(f"{RunDir(root / OLD).name} differs in seed: 0 and 1")


def test_what_only_started_runs_know_is_named_too(measured):
    found = measured({"device_name": "H100"}, {"device_name": "A100"})
    assert found.value is None
    assert found.reason.endswith("differs in device name: A100 and H100")


def test_a_run_far_from_a_baseline_is_not_named(measured):
    far = measured({"model": "resnet18", "seed": 1, "data": "products"}, {})
    assert "differs in" not in far.reason


@pytest.mark.parametrize(
    "training",
    [
        {"learning_rate": 0.1, "learning_rate_rule": "linear", "base_batch": 256},
        {"warmup_epochs": 0.0, "label_smoothing": 0.1, "pos_weight_cap": 10.0},
        {"best_by": "val_loss", "early_stop_epochs": 9, "trackers": ("tensorboard",)},
        {"timeout_s": 60, "pretrained": True, "decoder": "cpu", "channels_last": True},
    ],
    ids=str,
)
def test_settings_without_effect_on_speed_do_not_matter(measured, training):
    found = measured({"step_s": 0.2}, {"step_s": 0.2, "training": training})
    assert found.value == pytest.approx(2.0)


def test_what_really_decoded_counts_and_not_what_was_asked_for(measured):
    gpu = {"decoder": "gpu", "device": "cuda"}
    found = measured({**gpu, "training": {"decoder": "gpu"}}, gpu)
    assert found.value == pytest.approx(2.0)


def test_a_run_that_still_warms_up_has_no_number(measured):
    found = measured({}, {"epochs": 1, "state": None})
    assert (found.value, found.samples_per_s) == (None, None)
    assert "the run has no epoch after the first" in found.reason


def test_a_baseline_is_not_its_own_speed_up(root, make_spec, write_run):
    write_run(make_spec("single"), BASE)
    found = speedup_of(root, fold_run(write_run(make_spec("single"), RUN)))
    assert (found.value, found.reason) == (None, "this is a baseline")


# --- which baseline ---------------------------------------------------------------------------


def test_the_newest_baseline_counts_and_a_failed_one_does_not(root, make_spec, write_run):
    single = make_spec("single")
    write_run(single, OLD, step_s=0.4)
    write_run(single, BASE, step_s=0.2)
    write_run(single, OTHER, step_s=0.1, epochs=1, state="failed")
    run = fold_run(write_run(make_spec("ddp"), RUN, step_s=0.2))
    assert find_baseline(root, run).id == BASE
    assert speedup_of(root, run).value == pytest.approx(2.0)


def test_the_newest_counts_for_strong_scaling_too(root, make_spec, write_run):
    for run_id in (OLD, BASE):
        write_run(make_spec("single", micro_batch=128), run_id)
    found = speedup_of(root, fold_run(write_run(make_spec("ddp"), RUN)))
    assert (found.scaling, found.baseline_id) == ("strong", BASE)


def test_a_run_of_a_newer_ringside_does_not_break_the_search(root, make_spec, write_run):
    write_run(make_spec("single"), OLD)
    newer = write_run(make_spec("single"), BASE)
    newer.spec.write_text(newer.spec.read_text().replace('"format": 1', '"format": 2'))
    run = fold_run(write_run(make_spec("ddp"), RUN))
    assert find_baseline(root, run).id == OLD


@pytest.mark.parametrize("preset", ["ddp", "fsdp", "ddp_accum4"])
def test_the_baseline_to_measure_is_a_baseline(make_spec, preset):
    """What the page offers to measure must be what the speed-up then looks for."""
    sixteen = "reduce_dtype" if preset == "fsdp" else "comm_hook"
    settings = {sixteen: "bf16", "accumulation_steps": 4 if preset == "ddp_accum4" else 1}
    spec = make_spec(
        preset, num_processes=4, precision="bf16", seed=7, training=settings,
        environment={"NCCL_DEBUG": "INFO"}, gpu_ids=(4, 5, 6, 7),
    )  # fmt: skip
    baseline = baseline_of(spec)
    assert (baseline.preset, baseline.strategy, baseline.num_processes) == ("single", "single", 1)
    assert (baseline.global_batch, baseline.micro_batch, baseline.seed) == (64, 64, 7)
    assert baseline.accelerate.mixed_precision == "bf16"
    assert baseline.gpu_ids == (4,)
    assert baseline.environment == {}
    assert scaling_of(spec, baseline) == "weak"


def test_the_baseline_of_a_resumed_run_begins_at_the_start(make_spec):
    """The checkpoint is half trained, and may be gone by then."""
    assert baseline_of(make_spec("ddp", resume_from="/runs/x/checkpoints/last")).resume_from is None


# --- side by side -----------------------------------------------------------------------------


def test_runs_side_by_side(root, make_spec, write_run):
    base = write_run(make_spec("single"), BASE, auc_macro=0.80)
    fast = write_run(make_spec("ddp", num_processes=4), RUN, step_s=0.13, auc_macro=0.77)
    first, second = compare(root, [fold_run(base), fold_run(fast)]).runs
    assert (first.preset, second.preset) == ("single", "ddp")
    assert (first.global_batch, second.global_batch) == (64, 256)
    # 100 steps of 0.13 s; the first epoch, 130 s, is left out.
    assert second.epoch_time_s == pytest.approx(13.0)
    assert second.speedup.value == pytest.approx(3.0769, abs=1e-4)
    # Faster but worse: the loss of score stands beside it.
    assert (first.auc_delta, second.auc_delta) == (None, pytest.approx(-0.03))
    assert second.f1_delta == pytest.approx(0.0)
    # Total time with warm-up: 130 + 13 + 13 s on four devices.
    assert second.device_hours == pytest.approx(4 * 156 / 3600)
    assert second.not_comparable == ()


def test_scores_of_other_images_are_not_subtracted(root, make_spec, write_run):
    base = write_run(make_spec("single"), BASE)
    other = write_run(make_spec("ddp", data="products", image_size=64), RUN, fingerprint="x")
    _, second = compare(root, [fold_run(base), fold_run(other)]).runs
    assert (second.auc_delta, second.f1_delta) == (None, None)
    assert second.auc_macro == 0.8
    assert second.not_comparable == (
        "data: emoji and products", "image size: 32 and 64", "content of the data: abc and x",
    )  # fmt: skip


def test_a_run_without_scores_has_no_difference(root, make_spec, write_run):
    base = write_run(make_spec("single"), BASE)
    unscored = write_run(make_spec("ddp"), RUN, auc_macro=None)
    _, second = compare(root, [fold_run(base), fold_run(unscored)]).runs
    assert (second.auc_macro, second.auc_delta) == (None, None)


def test_the_gain_of_16_bit_is_a_factor_of_its_own(root, make_spec, write_run):
    """bf16 on one device is 2.5 times fp32; DDP over four is 3.2 times bf16 on one: not 8x."""
    write_run(make_spec("single"), OLD, step_s=0.10)
    write_run(make_spec("single", precision="bf16"), BASE, step_s=0.04)
    run = write_run(make_spec("ddp", precision="bf16", num_processes=4), RUN, step_s=0.05)
    comparison = compare(root, [fold_run(run)])
    assert comparison.precision_factor == {"bf16 at 64 images per device": pytest.approx(2.5)}
    assert comparison.runs[0].speedup.value == pytest.approx(3.2)


def test_the_factor_is_not_taken_at_two_batch_sizes(root, make_spec, write_run):
    """The only fp32 baseline has 256 images per step, the bf16 one 64."""
    write_run(make_spec("single", micro_batch=256), OLD, step_s=0.4)
    write_run(make_spec("single", precision="bf16"), BASE, step_s=0.04)
    run = write_run(make_spec("ddp", precision="bf16", num_processes=4), RUN)
    assert compare(root, [fold_run(run)]).precision_factor == {}
