"""Which settings go together. A setting that would be ignored is a mistake, not a wish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringside.errors import SpecError
from ringside.words import say

if TYPE_CHECKING:
    from collections.abc import Collection

    from ringside.spec import RunSpec, TrainingSettings

SEVERAL_DEVICES = ("data_parallel", "model_parallel")


DEPENDENT = (
    ("power_sgd_rank", "comm_hook", "power_sgd"),
    ("power_sgd_start_step", "comm_hook", "power_sgd"),
    ("pipeline_micro_batches", "parallelism", "pipeline"),
    ("momentum", "optimizer", "sgd"),
)
"""Settings that are read only where another one has this value; at its default, none is a wish."""


def refuse_given_idle(
    training: TrainingSettings, changed: Collection[str], written: Collection[str]
) -> None:
    """SpecError for a setting that a person gave and that nothing would read.

    `changed` names what was set for this run, `written` what the preset says. What a preset says
    may become idle when the setting that it depends on is changed.
    """
    for name, ruler, value in DEPENDENT:
        found = getattr(training, ruler)
        given = name in changed or (name in written and ruler not in changed)
        if given and found != value:
            raise SpecError(
                say("setting.needs_value", name=name, ruler=ruler, value=value, found=found)
            )


def refuse_contradictions(spec: RunSpec) -> None:
    """SpecError about the first pair of settings of which one would be ignored or fail."""
    if spec.accelerate.strategy == "single" and spec.num_processes != 1:
        raise SpecError(say("setting.no_is_one_process", num_processes=spec.num_processes))
    _refuse_idle(spec)
    _refuse_parallelism(spec)
    _refuse_compilation(spec)
    if spec.training.cudnn_benchmark and spec.device == "cpu":
        raise SpecError(say("setting.benchmark_on_cpu"))
    _refuse_sources(spec)
    if spec.training.warmup_epochs >= spec.epochs:
        raise SpecError(
            say(
                "setting.all_warm_up", warmup_epochs=spec.training.warmup_epochs, epochs=spec.epochs
            )
        )


def _refuse_idle(spec: RunSpec) -> None:
    """Settings that this strategy would not read."""
    training, strategy = spec.training, spec.strategy
    not_ddp = strategy != "ddp"
    idle = {
        ("gradient_as_bucket_view", "ddp"): training.gradient_as_bucket_view and not_ddp,
        ("static_graph", "ddp"): training.static_graph and not_ddp,
        ("find_unused_parameters", "ddp"): training.find_unused_parameters and not_ddp,
        ("bucket_cap_mb", "ddp"): training.bucket_cap_mb is not None and not_ddp,
        ("local_sgd_steps", "multi_gpu"): training.local_sgd_steps is not None
        and strategy != "local_sgd",
        (f"comm_hook {training.comm_hook}", "ddp"): training.comm_hook != "no" and not_ddp,
        (f"reduce_dtype {training.reduce_dtype}", "fsdp"): training.reduce_dtype != "fp32"
        and strategy != "fsdp",
        ("compile", "one_or_ddp"): training.compile and strategy not in ("single", "ddp"),
        ("ema_decay", "one_place"): training.ema_decay is not None
        and strategy not in ("single", "data_parallel", "ddp"),
        ("sync_batchnorm", "ddp"): training.sync_batchnorm and not_ddp,
        ("channels_last", "no_sharding"): training.channels_last is True and strategy == "fsdp",
    }
    for (name, need), wrong in idle.items():
        if wrong:
            reason = say(f"setting.needs_{need}", name=name)
            raise SpecError(say("setting.idle", reason=reason, strategy=strategy))
    if training.sync_batchnorm and spec.device == "cpu":
        raise SpecError(say("setting.sync_batchnorm_on_cpu"))
    if training.sync_batchnorm and spec.num_processes == 1:
        raise SpecError(say("setting.sync_batchnorm_on_one"))


def _refuse_parallelism(spec: RunSpec) -> None:
    """What nn.DataParallel and a pipeline need, and what they are not made for."""
    training, strategy = spec.training, spec.strategy
    if strategy not in SEVERAL_DEVICES:
        if training.parallelism == "no":
            return
        needs = {"data_parallel": "NO", "pipeline": "MULTI_GPU"}[training.parallelism]
        raise SpecError(
            say(
                "setting.parallelism_needs",
                parallelism=training.parallelism,
                needs=needs,
                distributed_type=spec.accelerate.distributed_type,
            )
        )
    if spec.num_devices < 2:
        on_gpus = strategy == "data_parallel"
        few = "setting.too_few_gpus" if on_gpus else "setting.too_few_devices"
        raise SpecError(say(few, strategy=strategy, num_devices=spec.num_devices))
    if strategy == "data_parallel":
        return
    unable = {
        "mixed_precision fp16": spec.accelerate.mixed_precision == "fp16",
        "freeze": training.freeze != "no",
        "mixup": training.mixup > 0,
        "cutmix": training.cutmix > 0,
    }
    for name, wrong in unable.items():
        if wrong:
            raise SpecError(say("setting.unable", name=name, strategy=strategy))


def _refuse_compilation(spec: RunSpec) -> None:
    """A CUDA graph's gradients live in its own memory, which its next replay overwrites."""
    training = spec.training
    if training.compile_mode == "default":
        return
    if not training.compile:
        raise SpecError(say("setting.mode_needs_compile", compile_mode=training.compile_mode))
    if spec.device == "cpu":
        raise SpecError(say("setting.mode_on_cpu", compile_mode=training.compile_mode))
    if training.accumulation_steps > 1:
        raise SpecError(
            say(
                "setting.mode_accumulates",
                compile_mode=training.compile_mode,
                accumulation_steps=training.accumulation_steps,
            )
        )


def _refuse_sources(spec: RunSpec) -> None:
    """Where pictures and weights come from."""
    training = spec.training
    if training.pretrained and spec.weights is not None:
        raise SpecError(say("setting.two_weights", weights=spec.weights))
    if training.decoder == "gpu" and spec.device == "cpu":
        raise SpecError(say("setting.decoder_on_cpu"))
    if spec.data.source == "synthetic":
        augmentation = ("mixup", "cutmix", "color_jitter")
        for name in augmentation:
            if getattr(training, name):
                raise SpecError(say("setting.no_pictures", name=name))
