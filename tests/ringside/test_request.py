"""From what a person asks to what will run: defaults, where each value came from, refusals."""

from __future__ import annotations

import msgspec
import pytest

from ringside.errors import RingsideError, RunDirError, SpecError
from ringside.hardware import Gpu, Hardware
from ringside.overrides import OPTION_OF, parse_overrides, read_value, with_overrides
from ringside.presets import Library
from ringside.request import RunRequest, continue_run, resolve
from ringside.sentences import plan_notes, plan_sentence
from ringside.spec import AccelerateSettings, FsdpConfig, RunSpec, TrainingSettings

GIB = 2**30


def machine(num_gpus: int = 0, num_cores: int = 2, first: int = 0) -> Hardware:
    gpus = tuple(
        Gpu(index=i, name="H200", uuid=f"GPU-{i}", memory_total_bytes=GIB, memory_used_bytes=0)
        for i in range(first, first + num_gpus)
    )
    return Hardware(gpus=gpus, num_cores=num_cores)


def spec_of(preset: str = "ddp", hardware: Hardware | None = None, **fields):
    return resolve(RunRequest(preset=preset, **fields), hardware or machine())


def refusal(preset: str = "ddp", hardware: Hardware | None = None, **fields) -> str:
    with pytest.raises(RingsideError) as caught:
        spec_of(preset, hardware, **fields)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


@pytest.fixture
def ours(tmp_path, monkeypatch):
    """Write a preset of the team: `ours("accelerate: {...}")`."""
    monkeypatch.setenv("RINGSIDE_LIBRARY", str(tmp_path))

    def write(rest: str) -> None:
        about = "about: {title: Ours, why: Because, when: Always}"
        (tmp_path / "ours.yaml").write_text(f"{about}\n{rest}\n")

    return write


@pytest.mark.parametrize(
    ("preset", "num_gpus", "num_cores", "processes", "device", "global_batch"),
    [
        ("single", 0, 1, 1, "cpu", 64),
        ("single", 0, 32, 1, "cpu", 64),
        ("single", 4, 32, 1, "cuda", 128),
        ("ddp", 0, 1, 1, "cpu", 64),
        ("ddp", 0, 2, 2, "cpu", 128),
        ("ddp", 0, 32, 2, "cpu", 128),
        ("ddp", 1, 32, 1, "cuda", 128),
        ("ddp", 2, 32, 2, "cuda", 256),
        ("ddp", 4, 32, 4, "cuda", 512),
        ("fsdp", 4, 1, 4, "cuda", 512),
        ("ddp_accum4", 2, 32, 2, "cuda", 1024),
        ("ddp_accum8", 0, 2, 2, "cpu", 1024),
    ],
)
def test_defaults(preset, num_gpus, num_cores, processes, device, global_batch):
    """A person who names only a preset gets a run that fits the machine."""
    spec = spec_of(preset, machine(num_gpus, num_cores))
    assert (spec.num_processes, spec.device, spec.global_batch) == (processes, device, global_batch)
    assert spec.accelerate.num_processes == processes
    assert spec.gpu_ids == tuple(range(processes if num_gpus else 0))
    assert (spec.model, spec.epochs, spec.seed) == ("resnet50", 3, 0)
    assert (spec.data.source, spec.data.image_size) == ("emoji", 32)


def test_gpus_keep_their_physical_numbers():
    """On a shared machine CUDA_VISIBLE_DEVICES=4,5,6,7 must not move a run to GPUs 0 to 3."""
    assert spec_of("ddp", machine(4, first=4), processes=3).gpu_ids == (4, 5, 6)


def test_what_is_asked_is_what_is_planned():
    spec = spec_of(
        hardware=machine(4), model="resnet18", data="products:ci", epochs=7, batch=96, processes=3,
        image_size=48, seed=11, request_id="r1",
        overrides={"learning_rate": "1e-2", "accelerate.mixed_precision": "bf16",
                   "training.comm_hook": "no", "environment.NCCL_DEBUG": "INFO"},
    )  # fmt: skip
    assert (spec.model, spec.epochs, spec.seed, spec.request_id) == ("resnet18", 7, 11, "r1")
    assert (spec.data.label, spec.data.image_size) == ("products:ci", 48)
    assert (spec.num_processes, spec.global_batch, spec.micro_batch) == (3, 96, 32)
    assert (spec.training.learning_rate, spec.training.comm_hook) == (0.01, "no")
    assert spec.accelerate.mixed_precision == "bf16"
    assert spec.environment == {"NCCL_DEBUG": "INFO"}


def test_every_value_tells_where_it_came_from():
    """The table that is printed before Start: a wrong origin sends a person to the wrong place."""
    spec = spec_of("ddp_accum4", epochs=2, batch=64, overrides={"weight_decay": "0.1"})
    expected = {
        "epochs": "flag",
        "global_batch": "flag",
        "training.weight_decay": "flag",
        "training.accumulation_steps": "preset",
        "accelerate.distributed_type": "preset",
        "accelerate.mixed_precision": "preset",
        "training.learning_rate": "default",
        "data": "default",
        "data.image_size": "default",
        "model": "default",
        "seed": "default",
        "num_processes": "machine",
        "accelerate.num_processes": "machine",
        "device": "machine",
    }
    assert {key: spec.sources.get(key) for key in expected} == expected
    assert spec_of(processes=1).sources["num_processes"] == "flag"
    assert spec_of("single").sources["num_processes"] == "preset"
    assert spec_of(image_size=64).sources["data.image_size"] == "flag"
    assert spec_of().sources["global_batch"] == "default"
    settings = {f"training.{name}" for name in spec.training.__struct_fields__}
    assert settings <= set(spec.sources)


def test_a_spec_that_was_resolved_reads_back():
    """The trainer reads what was written; a value out of range would leave it without a spec."""
    for preset in ("single", "ddp_accum4", "fsdp_bf16"):
        spec = spec_of(preset, machine(2), seed=2**31 - 1)
        assert msgspec.json.decode(msgspec.json.encode(spec), type=type(spec)) == spec


# --- batch, accumulation, learning rate -------------------------------------------------------


def test_accumulation_grows_the_batch_and_keeps_the_micro_batch():
    plain, accumulated = spec_of(batch=64), spec_of("ddp_accum4", batch=64)
    assert (plain.micro_batch, accumulated.micro_batch) == (32, 32)
    assert (plain.global_batch, accumulated.global_batch) == (64, 256)
    # The square-root rule: twice the rate at four times the batch.
    assert accumulated.learning_rate == pytest.approx(2 * plain.learning_rate)
    assert any("grew from 64 to 256" in note for note in plan_notes(accumulated))


def test_a_pinned_batch_shrinks_the_micro_batch():
    spec = spec_of("ddp_accum4", batch=64, keep_global_batch=True)
    assert (spec.global_batch, spec.micro_batch) == (64, 8)
    assert spec.learning_rate == spec_of(batch=64).learning_rate
    assert any("saves memory, not communication" in note for note in plan_notes(spec))


@pytest.mark.parametrize(("rule", "rate"), [("linear", 0.008), ("sqrt", 0.004), ("none", 0.002)])
def test_the_learning_rate_follows_its_rule(rule, rate):
    """0.002 at 64 images; the global batch is 256, four times as large."""
    overrides = {"learning_rate": "0.002", "learning_rate_rule": rule, "base_batch": "64"}
    assert spec_of(batch=256, overrides=overrides).learning_rate == pytest.approx(rate)


@pytest.mark.parametrize(
    ("preset", "num_gpus", "fields", "choices"),
    [
        ("ddp", 4, {"batch": 130}, "choose 128 or 132"),
        ("ddp", 4, {"batch": 3}, "choose 4"),
        ("ddp_accum4", 4, {"batch": 130}, "choose 128 or 132"),
        ("ddp_accum4", 4, {"batch": 130, "keep_global_batch": True}, "choose 128 or 144"),
        ("ddp_accum8", 2, {"batch": 5, "keep_global_batch": True}, "choose 16"),
    ],
)
def test_a_batch_that_cannot_be_split_names_the_nearest_that_can(preset, num_gpus, fields, choices):
    hardware = machine(num_gpus)
    sentence = refusal(preset, hardware, **fields)
    assert sentence.startswith(f"A batch of {fields['batch']} cannot be split over ")
    assert sentence.endswith(f"{choices}.")
    for value in map(int, choices.removeprefix("choose ").split(" or ")):
        resolve(RunRequest(preset=preset, **{**fields, "batch": value}), hardware)


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "hardware", "fields", "parts"),
    [
        ("ddp_bf61", machine(), {}, ["'ddp_bf61'", "'ddp_bf16'"]),
        ("", machine(), {}, ["''", "single"]),
        ("ddp", machine(), {"model": "resnet5O"}, ["'resnet5O'", "'resnet50'"]),
        ("ddp", machine(), {"model": "qqqqqq"}, ["'qqqqqq'", "resnet50"]),
        ("ddp", machine(), {"data": "emojy"}, ["'emojy'", "'emoji'"]),
        ("ddp", machine(), {"data": "products:cii"}, ["'cii'", "'ci'"]),
        ("ddp", machine(), {"data": "/no/such/folder"}, ["/no/such/folder"]),
        ("ddp", machine(), {"processes": 3}, ["3 processes", "2 CPU cores", "at most 2"]),
        ("ddp", machine(4), {"processes": 5}, ["5 processes", "4 GPUs", "at most 4"]),
        ("ddp", machine(1), {"processes": 2}, ["1 GPU;", "at most 1"]),
        ("single", machine(4), {"processes": 2}, ["one process", "2"]),
        ("ddp_fp16", machine(), {}, ["ddp_fp16", "needs a GPU"]),
        ("fsdp_fp16", machine(), {}, ["fsdp_fp16", "needs a GPU"]),
        ("ddp", machine(), {"overrides": {"mixed_precision": "fp16"}}, ["fp16 needs a GPU"]),
        ("ddp", machine(), {"epochs": 0}, ["epochs", "not 0"]),
        ("ddp", machine(), {"batch": -8}, ["batch", "not -8"]),
        ("ddp", machine(), {"batch": 0}, ["batch", "not 0"]),
        ("ddp", machine(), {"batch": 2**30}, ["batch", str(2**30)]),
        ("ddp", machine(), {"processes": 0}, ["processes", "not 0"]),
        ("ddp", machine(), {"seed": -1}, ["seed", "-1"]),
        ("ddp", machine(), {"seed": 2**31}, ["seed", str(2**31)]),
        ("ddp", machine(), {"image_size": 4}, ["4", "8 to 4096"]),
        ("ddp", machine(), {"image_size": 5000}, ["5000", "8 to 4096"]),
    ],
)
def test_what_cannot_run_is_refused_in_one_sentence(preset, hardware, fields, parts):
    sentence = refusal(preset, hardware, **fields)
    assert [part for part in parts if part not in sentence] == []


@pytest.mark.parametrize(
    ("key", "text", "parts"),
    [
        ("lerning_rate", "1", ["lerning_rate", "'learning_rate'"]),
        ("about.title", "x", ["about.title", "no setting"]),
        ("accelerate.learning_rate", "1", ["accelerate.learning_rate"]),
        ("num_processes", "4", ["--processes"]),
        ("learning_rate", "fast", ["learning_rate must be a number above 0, not fast."]),
        ("learning_rate", "-1", ["learning_rate must be a number above 0, not -1."]),
        ("learning_rate", "nan", ["learning_rate must be a finite number above 0, not nan."]),
        ("learning_rate", "", ["learning_rate must be a number above 0, not empty."]),
        ("learning_rate", "1e999", ["a finite number above 0, not 1e999."]),
        ("learning_rate", ".inf", ["a finite number above 0, not .inf."]),
        ("ema_decay", "inf", ["a finite number above 0 and below 1, or null, not inf."]),
        ("accumulation_steps", "3000000000", ["of at least 1 and at most 2147483647, not"]),
        ("learning_rate", "9" * 90, ["not 9999999999999999999999999999999999999999…."]),
        ("training.compile", "yes", ["compile must be true or false, not yes."]),
        ("num_workers", "none", ["num_workers must be a whole number from 0 to 256, or null"]),
        ("momentum", "1", ["momentum must be a number of at least 0 and below 1, not 1."]),
        ("min_crop_area", "0", ["min_crop_area must be a number above 0 and at most 1, not 0."]),
        ("channels_last", "maybe", ["channels_last must be true or false, or null, not maybe."]),
        ("comm_hook", "", ["comm_hook must be bf16, fp16, no or power_sgd, not empty."]),
        ("comm_hook", "[1", ["comm_hook", "[1"]),
        ("mixed_precision", "fp8", ["mixed_precision must be bf16, fp16 or no, not fp8."]),
        ("trackers", "{a: 1}", ["trackers must be one name, or several with commas between"]),
        ("trackers", "tensorbord", ["no tracker 'tensorbord'"]),
        ("distributed_type", "FSDP", ["fsdp_config"]),
        ("accumulation_steps", "0", ["accumulation_steps must be a whole number of at least 1"]),
        ("accumulation_steps", "1.5", ["a whole number of at least 1", "not 1.5."]),
        ("environment.LD_PRELOAD", "/x.so", ["LD_PRELOAD"]),
        ("environment.NCCL_DEBUG", "a\0b", ["NCCL_DEBUG", "printable"]),
    ],
)
def test_an_override_that_cannot_be_is_refused(key, text, parts):
    sentence = refusal(overrides={key: text})
    assert [part for part in parts if part not in sentence] == []


@pytest.mark.parametrize(
    ("key", "option"),
    [
        ("epochs", "--epochs"), ("data", "--data"), ("model", "--model"), ("batch", "--batch"),
        ("batch-size", "--batch"), ("seed", "--seed"), ("image_size", "--image-size"),
        ("data.image_size", "--image-size"), ("time_limit_s", "--time-limit"),
        ("num_processes", "--processes"), ("weights", "--weights"),
    ],
)  # fmt: skip
def test_what_is_an_option_of_the_run_is_no_setting(key, option):
    assert f"is given with {option}, not as a setting" in refusal(overrides={key: "1"})


def test_no_setting_is_taken_for_an_option():
    for kind in (TrainingSettings, FsdpConfig):
        assert not set(kind.__struct_fields__) & OPTION_OF.keys()


def test_every_setting_says_what_it_takes():
    """One rule for all types; a new setting of an unknown type would say nothing."""
    for kind in (TrainingSettings, AccelerateSettings, FsdpConfig):
        for name in kind.__struct_fields__:
            with pytest.raises(SpecError) as refused:
                read_value(name, "[[1]]")
            assert str(refused.value).startswith(f"{name} must be ")
            assert "`" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "names"),
    [("tensorboard", ("tensorboard",)), ("a, b", ("a", "b")), ("[a]", ("a",)), ("", ())],
)
def test_names_are_given_as_one_word_or_several(text, names, monkeypatch):
    monkeypatch.setattr("ringside.request.check_trackers", lambda names: None)
    assert spec_of(overrides={"trackers": text}).training.trackers == names


@pytest.mark.parametrize(
    ("pairs", "first", "second"),
    [
        (["no_such=1"], None, None),
        (["learning_rate=1", "learning_rate=2"], "learning_rate=1", "learning_rate=2"),
        (["compile=true", "training.compile=false"], "compile=true", "training.compile=false"),
        (
            ["fsdp_version=2", "accelerate.fsdp_config.fsdp_version=2"],
            "fsdp_version=2",
            "accelerate.fsdp_config.fsdp_version=2",
        ),
    ],
)
def test_a_setting_given_twice_is_refused_with_both(pairs, first, second):
    if first is None:
        with pytest.raises(SpecError, match="no setting of this name"):
            parse_overrides(pairs)
        return
    with pytest.raises(SpecError) as refused:
        parse_overrides(pairs)
    assert f"{first} and {second} set the same thing" in str(refused.value)
    with pytest.raises(SpecError, match="set the same thing"):
        with_overrides(Library().get("ddp"), {"compile": "true", "training.compile": "false"})


def test_a_setting_that_nothing_reads_is_refused_when_it_was_given(ours):
    idle = {"power_sgd_rank": "8", "power_sgd_start_step": "5", "pipeline_micro_batches": "2"}
    for name, value in {**idle, "momentum": "0.8"}.items():
        assert refusal(overrides={name: value}).startswith(f"{name} needs ")
    # At their defaults they are no wish, and where they are read they are welcome.
    assert spec_of().training.momentum == TrainingSettings().momentum
    assert spec_of(overrides={"momentum": "0.8", "optimizer": "sgd"}).training.momentum == 0.8
    assert spec_of("ddp_powersgd", overrides={"power_sgd_rank": "8"}).training.power_sgd_rank == 8
    # What a preset says goes idle with the setting that it depends on.
    assert spec_of("ddp_powersgd", overrides={"comm_hook": "no"}).training.comm_hook == "no"
    ours("accelerate: {distributed_type: MULTI_GPU}\ntraining: {momentum: 0.8}")
    assert "momentum needs optimizer sgd" in refusal("ours")


def test_threads_of_a_cpu_device_follow_their_variable(ours):
    four = machine(num_cores=4)
    asked = {"environment.OMP_NUM_THREADS": "2"}
    spec = spec_of(hardware=four, overrides=asked)
    assert (spec.threads_per_device, spec.num_processes) == (2, 2)
    assert spec.sources["threads_per_device"] == "flag"
    assert spec_of(hardware=four).sources["threads_per_device"] == "machine"
    assert spec_of(hardware=machine(2), overrides=asked).threads_per_device == 1
    assert "4 CPU cores for 2 threads a process; choose at most 2." in refusal(
        hardware=four, processes=3, overrides=asked
    )
    for bad in ("0", "5", "two", "", "1.5"):
        sentence = refusal(hardware=four, overrides={"environment.OMP_NUM_THREADS": bad})
        assert "OMP_NUM_THREADS must be a whole number from 1 to 4" in sentence
    ours('accelerate: {distributed_type: MULTI_GPU}\nenvironment: {OMP_NUM_THREADS: "4"}')
    spec = spec_of("ours", four)
    assert (spec.threads_per_device, spec.sources["threads_per_device"]) == (4, "preset")


@pytest.mark.parametrize(
    ("preset", "model", "words"),
    [
        ("model_parallel", "vit_small_patch16_224", "ResNet family"),
        ("model_parallel", "convnext_tiny", "ResNet family"),
        ("fsdp", "vit_small_patch16_224", "FSDP wraps blocks named Bottleneck or BasicBlock"),
    ],
)
def test_a_model_that_the_strategy_cannot_take_is_refused(preset, model, words):
    assert words in refusal(preset, model=model)
    assert spec_of(preset, model="resnet18").model == "resnet18"
    named = {"fsdp_transformer_layer_cls_to_wrap": "Block"}
    assert spec_of("fsdp", model="vit_small_patch16_224", overrides=named)


def test_a_preset_for_other_devices_is_refused(ours):
    ours("accelerate: {distributed_type: 'NO'}".replace("'", '"'))
    assert spec_of("ours", machine(4)).num_processes == 1
    ours("accelerate: {distributed_type: MULTI_GPU, num_processes: 8}")
    assert spec_of("ours", machine(8)).sources["num_processes"] == "preset"
    assert "8 processes" in refusal("ours", machine(4))
    assert spec_of("ours", machine(4), processes=4).num_processes == 4


# --- the sentence before Start ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "hardware", "parts"),
    [
        ("single", machine(), ["1 process", "one device", "fp32", "global batch 64 = 64 x 1 x 1"]),
        ("ddp", machine(4), ["4 processes", "GPU 0, 1, 2 and 3", "DDP", "512 = 128 x 4 x 1"]),
        ("ddp_bf16_compress", machine(2), ["GPU 0 and 1", "bf16 gradients"]),
        ("ddp_bf16_compiled", machine(1), ["GPU 0", "bf16", "compiled"]),
        ("fsdp_bf16", machine(), ["FSDP2", "bf16", "CPU"]),
        ("ddp_accum4", machine(), ["global batch 512 = 64 x 2 x 4"]),
    ],
)
def test_the_plan_sentence_says_what_will_run(preset, hardware, parts):
    sentence = plan_sentence(spec_of(preset, hardware))
    assert [part for part in parts if part not in sentence] == []


def test_a_spec_refuses_what_does_not_fit_together(make_spec):
    """Also a spec that no request made: a file that somebody edited."""
    with pytest.raises(SpecError, match="one process"):
        make_spec("single", num_processes=2)
    written = msgspec.to_builtins(make_spec("ddp"))
    with pytest.raises(SpecError, match="choose 6 or 8"):
        msgspec.convert(written | {"global_batch": 7}, RunSpec)


def test_warm_up_over_the_whole_run_is_refused():
    """The learning rate that the plan shows would never be reached."""
    assert "never be reached" in refusal(
        "ddp", machine(2), epochs=2, overrides={"warmup_epochs": "2"}
    )
    assert spec_of("ddp", machine(2), epochs=1).training.warmup_epochs < 1


def test_endless_epochs_are_refused_before_a_spec_is_written():
    assert "at most 100000" in refusal("ddp", machine(2), epochs=10**20)


def test_accumulation_cannot_grow_the_batch_without_end():
    assert "beyond" in refusal("ddp", machine(2), overrides={"accumulation_steps": "100000"})


class TestContinue:
    """`ringside resume`: from the last checkpoint, and only when something is left to do."""

    @pytest.fixture
    def stopped(self, make_spec, write_run, leave_checkpoint):
        """Stopped after two of three epochs."""
        run = write_run(make_spec("ddp", epochs=3), "20260101-000000-calm-fox", state="stopped")
        leave_checkpoint(run, epoch=3)
        return run

    def test_it_goes_on_from_the_last_checkpoint(self, stopped):
        spec = continue_run(stopped, machine(), epochs=5)
        assert spec.resume_from == str(stopped.checkpoints / "last")
        assert (spec.epochs, spec.num_processes) == (5, 2)

    def test_more_processes_keep_the_global_batch(self, stopped):
        spec = continue_run(stopped, Hardware(num_cores=4), processes=4)
        assert (spec.num_processes, spec.global_batch) == (4, 128)

    def test_nothing_left_to_train_is_a_sentence(self, stopped):
        with pytest.raises(SpecError, match="has trained 2 epochs already; ask for more than 2"):
            continue_run(stopped, machine(), epochs=2)
        with pytest.raises(SpecError, match="has trained 2 epochs already"):
            continue_run(stopped, machine(), epochs=1)

    def test_scores_of_the_last_epoch_are_left_to_do(self, stopped, leave_checkpoint):
        leave_checkpoint(stopped, epoch=4)
        with pytest.raises(SpecError, match="has trained all of its 3 epochs"):
            continue_run(stopped, machine())
        leave_checkpoint(stopped, epoch=4, unevaluated=3)
        assert continue_run(stopped, machine()).epochs == 3

    @pytest.mark.parametrize("content", ["", "{", "[1]", '{"epoch": "three"}'])
    def test_a_damaged_description_is_a_sentence(self, stopped, content):
        (stopped.checkpoints / "last/about.json").write_text(content)
        with pytest.raises(RunDirError, match=r"about\.json does not describe a model"):
            continue_run(stopped, machine())

    def test_without_a_checkpoint_it_is_refused(self, make_spec, write_run):
        run = write_run(make_spec("ddp"), "20260101-000000-calm-fox")
        with pytest.raises(SpecError, match="no checkpoint to resume from"):
            continue_run(run, machine())


@pytest.mark.parametrize(
    ("preset", "overrides", "data", "words"),
    [
        ("single", {"decoder": "gpu"}, "emoji", "decoder gpu needs a GPU"),
        ("single", {"mixup": "0.2"}, "synthetic", "mixup changes pictures"),
        ("single", {"cudnn_benchmark": "true"}, "emoji", "convolutions of a GPU"),
        (
            "single",
            {"compile": "true", "compile_mode": "reduce-overhead"},
            "emoji",
            "CUDA graphs and the run is on a CPU",
        ),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(preset, overrides, data, words):
    request = RunRequest(preset=preset, data=data, overrides=overrides)
    with pytest.raises(SpecError, match=words):
        resolve(request, machine(num_cores=2))


def test_graphs_and_accumulation_do_not_go_together():
    request = RunRequest(
        preset="ddp_accum4", overrides={"compile": "true", "compile_mode": "reduce-overhead"},
    )  # fmt: skip
    with pytest.raises(SpecError, match="gradients of 4 micro-steps"):
        resolve(request, machine(2))
