"""What a run is asked to do: the settings of a preset and the complete, frozen request.

Everything here is plain data. Nothing imports torch or Accelerate; the trainer builds the real
objects from these fields, and every field is read by something.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ringside.errors import SpecError

FORMAT = 1

Device = Literal["cuda", "cpu"]
Precision = Literal["no", "fp16", "bf16"]
Strategy = Literal["single", "ddp", "local_sgd", "fsdp"]

PositiveInt = Annotated[int, Meta(ge=1)]
NonNegative = Annotated[float, Meta(ge=0)]
PositiveFloat = Annotated[float, Meta(gt=0)]

STRATEGY_OF_TYPE: dict[str, Strategy] = {"NO": "single", "MULTI_GPU": "ddp", "FSDP": "fsdp"}


class FsdpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `fsdp_config` block of an Accelerate file, FSDP2 only; keys are Accelerate's own.

    `fsdp_cpu_ram_efficient_loading` must be false: with true, Accelerate 1.15 fails on any model
    that has buffers, and BatchNorm has (huggingface/accelerate#3898).
    """

    fsdp_version: Literal[2] = 2
    fsdp_reshard_after_forward: bool = True
    fsdp_offload_params: bool = False
    fsdp_auto_wrap_policy: Literal["TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"] = (
        "TRANSFORMER_BASED_WRAP"
    )
    fsdp_transformer_layer_cls_to_wrap: str = "Bottleneck,BasicBlock"
    fsdp_cpu_ram_efficient_loading: Literal[False] = False
    fsdp_state_dict_type: Literal["SHARDED_STATE_DICT", "FULL_STATE_DICT"] = "SHARDED_STATE_DICT"


class AccelerateSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a preset that Accelerate's own file can hold.

    `num_processes` None means: one for every device of the machine.
    """

    distributed_type: Literal["NO", "MULTI_GPU", "FSDP"] = "NO"
    mixed_precision: Precision = "no"
    num_processes: PositiveInt | None = None
    fsdp_config: FsdpConfig | None = None

    def __post_init__(self) -> None:
        if (self.distributed_type == "FSDP") != (self.fsdp_config is not None):
            raise ValueError("fsdp_config and distributed_type FSDP go together")

    @property
    def strategy(self) -> Strategy:
        """The short name of what `distributed_type` asks for."""
        return STRATEGY_OF_TYPE[self.distributed_type]


class TrainingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a preset that Accelerate's file cannot hold; read by the trainer.

    `learning_rate` is stated for a global batch of `base_batch` images and scaled by
    `learning_rate_rule` (linear: Goyal et al. 2017, arXiv:1706.02677; sqrt: usual with AdamW).
    `reduce_dtype` is FSDP's type of the gradient reduction; a comm hook is DDP's way to the same.
    `channels_last` None means: wherever the strategy allows it. `bucket_cap_mb` None is torch's own
    layout, which is not the same as 25. `local_sgd_steps` averages weights every so many optimizer
    steps instead of gradients in each (Stich 2018, arXiv:1805.09767). `power_sgd_*`: rank and first
    compressed step of Vogels et al. 2019, arXiv:1905.13727.

    `compile_mode` reduce-overhead replays CUDA graphs, for steps bound by launches. `decoder` auto
    decodes JPEG on the GPU where it can. `min_crop_area` is the smallest share of a picture that a
    training crop keeps. `mixup` and `cutmix` are the alpha of their Beta distributions (Zhang et
    al. 2018, arXiv:1710.09412; Yun et al. 2019, arXiv:1905.04899), 0 is off. `pos_weight_cap`
    weighs a label's positives by negatives / positives, at most this much. `ema_decay` keeps an
    exponential average of the weights beside them. `best_by` names the score that makes a
    checkpoint the best. `early_stop_epochs` ends a run after so many epochs without a better one.
    `timeout_s` is how long a rank may keep the others waiting.
    """

    optimizer: Literal["sgd", "adamw"] = "adamw"
    learning_rate: PositiveFloat = 0.002
    learning_rate_rule: Literal["linear", "sqrt", "none"] = "sqrt"
    base_batch: PositiveInt = 64
    momentum: Annotated[float, Meta(ge=0, lt=1)] = 0.9
    weight_decay: NonNegative = 0.05
    warmup_epochs: NonNegative = 0.5
    clip_norm: NonNegative = 1.0
    accumulation_steps: PositiveInt = 1
    channels_last: bool | None = None
    compile: bool = False
    compile_mode: Literal["default", "reduce-overhead"] = "default"
    comm_hook: Literal["no", "fp16", "bf16", "power_sgd"] = "no"
    power_sgd_rank: PositiveInt = 4
    power_sgd_start_step: Annotated[int, Meta(ge=2)] = 10
    gradient_as_bucket_view: bool = False
    static_graph: bool = False
    bucket_cap_mb: PositiveInt | None = None
    local_sgd_steps: PositiveInt | None = None
    reduce_dtype: Literal["fp32", "fp16", "bf16"] = "fp32"
    num_workers: Annotated[int, Meta(ge=0, le=256)] | None = None
    decoder: Literal["auto", "cpu", "gpu"] = "auto"
    min_crop_area: Annotated[float, Meta(gt=0, le=1)] = 0.7
    color_jitter: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    mixup: NonNegative = 0.0
    cutmix: NonNegative = 0.0
    label_smoothing: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    pos_weight_cap: PositiveFloat | None = None
    pretrained: bool = False
    freeze: Literal["no", "backbone"] = "no"
    sync_batchnorm: bool = False
    ema_decay: Annotated[float, Meta(gt=0, lt=1)] | None = None
    best_by: Literal["auc_macro", "f1_macro", "map_macro", "accuracy", "val_loss"] = "auc_macro"
    save_every_steps: PositiveInt | None = None
    early_stop_epochs: PositiveInt | None = None
    trackers: tuple[str, ...] = ()
    timeout_s: Annotated[int, Meta(ge=5, le=86_400)] = 600


class DataSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which images; `source` names a module of `ringside.data.sources`, `path` is absolute.

    `skip` names files that a person chose to leave out, as the data check named them.
    """

    source: str
    path: str | None = None
    profile: str | None = None
    image_size: Annotated[int, Meta(ge=8, le=4096)] = 32
    skip: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The short name a person typed: `emoji`, `products:ci`, or the folder's path."""
        if self.source == "folder":
            return self.path or "folder"
        return f"{self.source}:{self.profile}" if self.profile else self.source


def refuse_uneven(batch: int, num_processes: int, micro_steps: int = 1) -> None:
    """SpecError with the two nearest legal values for a batch that cannot be split evenly."""
    parts = num_processes * micro_steps
    if batch % parts == 0:
        return
    lower = batch // parts * parts
    choices = f"{lower} or {lower + parts}" if lower else f"{parts}"
    over = f"{num_processes} process{'es' if num_processes > 1 else ''}"
    over += f" x {micro_steps} micro-steps" if micro_steps > 1 else ""
    raise SpecError(f"A batch of {batch} cannot be split over {over}; choose {choices}.")


class RunSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The complete request, resolved against one machine; the only thing the trainer reads.

    `global_batch` counts images per optimizer step over all devices and micro-steps;
    `keeps_global_batch` tells that accumulation was asked not to multiply it.
    `resume_from` is the absolute path of a checkpoint folder to continue from.
    `sources` tells for every resolved value where it came from (preset, flag, default, machine).
    """

    format: int = FORMAT
    preset: str
    accelerate: AccelerateSettings
    training: TrainingSettings
    environment: dict[str, str] = {}
    data: DataSpec
    model: str = "resnet50"
    epochs: Annotated[int, Meta(ge=1, le=100_000)] = 3
    global_batch: PositiveInt
    keeps_global_batch: bool = False
    num_processes: PositiveInt
    device: Device
    gpu_ids: tuple[int, ...] = ()
    threads_per_device: PositiveInt = 1
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    sources: dict[str, str] = {}
    request_id: str | None = None
    resume_from: str | None = None

    def __post_init__(self) -> None:
        if self.strategy == "single" and self.num_processes != 1:
            raise SpecError(
                f"distributed_type NO starts one process, but num_processes is "
                f"{self.num_processes}; choose MULTI_GPU or FSDP, or one process."
            )
        self._refuse_idle_settings()
        if self.training.warmup_epochs >= self.epochs:
            raise SpecError(
                f"warmup_epochs is {self.training.warmup_epochs:g} of {self.epochs} epochs, so the "
                "learning rate would never be reached; choose less warm-up or more epochs."
            )
        refuse_uneven(self.global_batch, self.num_processes, self.training.accumulation_steps)

    def _refuse_idle_settings(self) -> None:
        """A setting that this strategy would ignore is a mistake, not a wish."""
        training, strategy = self.training, self.strategy
        not_ddp = strategy != "ddp"
        idle = {
            "gradient_as_bucket_view needs DDP": training.gradient_as_bucket_view and not_ddp,
            "static_graph needs DDP": training.static_graph and not_ddp,
            "bucket_cap_mb needs DDP": training.bucket_cap_mb is not None and not_ddp,
            "local_sgd_steps needs distributed_type MULTI_GPU": training.local_sgd_steps is not None
            and strategy != "local_sgd",
            f"comm_hook {training.comm_hook} needs DDP": training.comm_hook != "no" and not_ddp,
            f"reduce_dtype {training.reduce_dtype} needs FSDP": training.reduce_dtype != "fp32"
            and strategy != "fsdp",
            "compile needs one device or DDP": training.compile
            and strategy in ("fsdp", "local_sgd"),
            "channels_last weights cannot be sharded by FSDP": training.channels_last is True
            and strategy == "fsdp",
        }
        for reason, wrong in idle.items():
            if wrong:
                raise SpecError(f"{reason}, and the strategy is {strategy}; leave the setting out.")

    @property
    def channels_last(self) -> bool:
        """Whether weights are stored channels_last: as set, else unless FSDP forbids it."""
        return self.strategy != "fsdp" and self.training.channels_last is not False

    @property
    def strategy(self) -> Strategy:
        """single, ddp, local_sgd or fsdp."""
        strategy = self.accelerate.strategy
        local = strategy == "ddp" and self.training.local_sgd_steps is not None
        return "local_sgd" if local else strategy

    @property
    def micro_batch(self) -> int:
        """Images in one forward pass of one device."""
        return self.global_batch // (self.num_processes * self.training.accumulation_steps)

    @property
    def learning_rate(self) -> float:
        """The peak learning rate after the rule has been applied to the global batch."""
        ratio = self.global_batch / self.training.base_batch
        factor = {"linear": ratio, "sqrt": math.sqrt(ratio), "none": 1.0}
        return self.training.learning_rate * factor[self.training.learning_rate_rule]


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What Accelerate, torch and the model really gave, read back inside the trainer.

    `mixed_precision` comes from the dtype of a tensor inside the forward pass;
    `reduced_bytes_per_step` is what one rank hands to gradient reduction per optimizer step.
    """

    num_processes: int
    strategy: str
    mixed_precision: str
    backend: str | None
    device: str
    device_name: str
    num_parameters: int
    bucket_bytes: tuple[int, ...] = ()
    reduced_bytes_per_step: int | None = None
    reduce_dtype: str | None = None
    comm_hook: str = "no"
    gradient_as_bucket_view: bool = False
    static_graph: bool = False
    compiled: bool = False
    channels_last: bool = False
    threads: int = 1
    environment: dict[str, str] = {}
    versions: dict[str, str] = {}
