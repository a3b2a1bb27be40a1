"""Which settings go together. A setting that would be ignored is a mistake, not a wish."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringside.errors import SpecError

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
                f"{name} needs {ruler} {value}, and {ruler} is {found}; leave {name} out or set "
                f"{ruler}={value}."
            )


def refuse_contradictions(spec: RunSpec) -> None:
    """SpecError about the first pair of settings of which one would be ignored or fail."""
    if spec.accelerate.strategy == "single" and spec.num_processes != 1:
        raise SpecError(
            f"distributed_type NO starts one process, but num_processes is "
            f"{spec.num_processes}; choose MULTI_GPU or FSDP, or one process."
        )
    _refuse_idle(spec)
    _refuse_parallelism(spec)
    _refuse_compilation(spec)
    _refuse_sources(spec)
    if spec.training.warmup_epochs >= spec.epochs:
        raise SpecError(
            f"warmup_epochs is {spec.training.warmup_epochs:g} of {spec.epochs} epochs, so the "
            "learning rate would never be reached; choose less warm-up or more epochs."
        )


def _refuse_idle(spec: RunSpec) -> None:
    """Settings that this strategy would not read."""
    training, strategy = spec.training, spec.strategy
    not_ddp = strategy != "ddp"
    idle = {
        "gradient_as_bucket_view needs DDP": training.gradient_as_bucket_view and not_ddp,
        "static_graph needs DDP": training.static_graph and not_ddp,
        "find_unused_parameters needs DDP": training.find_unused_parameters and not_ddp,
        "bucket_cap_mb needs DDP": training.bucket_cap_mb is not None and not_ddp,
        "local_sgd_steps needs distributed_type MULTI_GPU": training.local_sgd_steps is not None
        and strategy != "local_sgd",
        f"comm_hook {training.comm_hook} needs DDP": training.comm_hook != "no" and not_ddp,
        f"reduce_dtype {training.reduce_dtype} needs FSDP": training.reduce_dtype != "fp32"
        and strategy != "fsdp",
        "compile needs one device or DDP": training.compile and strategy not in ("single", "ddp"),
        "ema_decay needs all weights in one place": training.ema_decay is not None
        and strategy not in ("single", "data_parallel", "ddp"),
        "sync_batchnorm needs DDP": training.sync_batchnorm and not_ddp,
        "channels_last weights cannot be sharded by FSDP": training.channels_last is True
        and strategy == "fsdp",
    }
    for reason, wrong in idle.items():
        if wrong:
            raise SpecError(f"{reason}, and the strategy is {strategy}; leave the setting out.")
    if training.sync_batchnorm and (spec.device == "cpu" or spec.num_processes == 1):
        here = "a CPU" if spec.device == "cpu" else "one GPU"
        raise SpecError(
            "sync_batchnorm needs several GPUs, because torch's SyncBatchNorm works through "
            f"NCCL, and the run is on {here}; leave the setting out."
        )


def _refuse_parallelism(spec: RunSpec) -> None:
    """What nn.DataParallel and a pipeline need, and what they are not made for."""
    training, strategy = spec.training, spec.strategy
    if strategy not in SEVERAL_DEVICES:
        if training.parallelism == "no":
            return
        needs = {"data_parallel": "NO", "pipeline": "MULTI_GPU"}[training.parallelism]
        raise SpecError(
            f"parallelism {training.parallelism} needs distributed_type {needs}, not "
            f"{spec.accelerate.distributed_type}; choose the preset data_parallel or "
            "model_parallel."
        )
    noun = "GPUs" if strategy == "data_parallel" else "devices"
    if spec.num_devices < 2:
        raise SpecError(
            f"{strategy} spreads the work over at least two {noun} and the run has "
            f"{spec.num_devices}; choose the preset single."
        )
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
            raise SpecError(f"{name} does not work with {strategy}; leave it out or use ddp.")


def _refuse_compilation(spec: RunSpec) -> None:
    """A CUDA graph's gradients live in its own memory, which its next replay overwrites."""
    training = spec.training
    if training.compile_mode == "default":
        return
    if not training.compile:
        raise SpecError(
            f"compile_mode {training.compile_mode} needs compile; set compile to true as well."
        )
    if spec.device == "cpu":
        raise SpecError(
            f"compile_mode {training.compile_mode} replays CUDA graphs and the run is on a CPU; "
            "leave the setting out."
        )
    if training.accumulation_steps > 1:
        raise SpecError(
            f"compile_mode {training.compile_mode} cannot add up the gradients of "
            f"{training.accumulation_steps} micro-steps; choose compile_mode default."
        )


def _refuse_sources(spec: RunSpec) -> None:
    """Where pictures and weights come from."""
    training = spec.training
    if training.pretrained and spec.weights is not None:
        raise SpecError(
            f"pretrained and weights {spec.weights} both say where weights come from; leave "
            "one of them out."
        )
    if training.decoder == "gpu" and spec.device == "cpu":
        raise SpecError("decoder gpu needs a GPU and the run is on a CPU; choose auto or cpu.")
    if spec.data.source == "synthetic":
        augmentation = ("mixup", "cutmix", "color_jitter")
        for name in augmentation:
            if getattr(training, name):
                raise SpecError(
                    f"{name} changes pictures and the source synthetic has none; leave it out."
                )
