"""What a run is asked to do: the settings of a preset and the complete, frozen request.

Everything here is plain data. Nothing imports torch or Accelerate; the trainer builds the real
objects from these fields, and every field is read by something.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ringside.combinations import refuse_contradictions
from ringside.errors import UnevenBatchError
from ringside.words import say, say_count

FORMAT = 1

Device = Literal["cuda", "cpu"]
Precision = Literal["no", "fp16", "bf16"]
Strategy = Literal["single", "data_parallel", "ddp", "local_sgd", "model_parallel", "fsdp"]
Separator = Literal["\n", ";", "|", ",", "none"]
OWN_FILES = ("folder", "parquet", "prepared")
"""Sources of what lies at a path that a person typed."""

PositiveInt = Annotated[int, Meta(ge=1, lt=2**31)]
NonNegative = Annotated[float, Meta(ge=0)]
PositiveFloat = Annotated[float, Meta(gt=0)]

MAX_PROFILE_STEPS = 50
MAX_RETRIES = 1
DEFAULT_PROFILE_STEPS = 5
ProfileSteps = Annotated[int, Meta(ge=0, le=MAX_PROFILE_STEPS)]

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
            raise ValueError(say("setting.fsdp_together"))

    @property
    def strategy(self) -> Strategy:
        """The short name of what `distributed_type` asks for."""
        return STRATEGY_OF_TYPE[self.distributed_type]


class TrainingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The part of a preset that Accelerate's file cannot hold; read by the trainer.

    `learning_rate` is stated for a global batch of `base_batch` images and scaled by
    `learning_rate_rule` (linear: Goyal et al. 2017, arXiv:1706.02677; sqrt: usual with AdamW).
    `reduce_dtype` is FSDP's type of the gradient reduction; a comm hook is DDP's way to the same.
    `channels_last` is the layout of images and weights; None means: on, for weights wherever the
    strategy allows it. `bucket_cap_mb` None is torch's own
    layout, which is not the same as 25. `local_sgd_steps` averages weights every so many optimizer
    steps instead of gradients in each (Stich 2018, arXiv:1805.09767). `power_sgd_*`: rank and first
    compressed step of Vogels et al. 2019, arXiv:1905.13727. `parallelism` data_parallel is one
    process with nn.DataParallel over several GPUs; pipeline cuts the model into one stage a process
    and each batch into `pipeline_micro_batches` (GPipe: Huang et al. 2019, arXiv:1811.06965).

    `compile_mode` reduce-overhead replays CUDA graphs, for steps bound by launches.
    `cudnn_benchmark` lets cuDNN try its algorithms before the first step of every shape instead
    of choosing by its heuristics. `decoder` auto decodes JPEG on the GPU where it can.
    `min_crop_area` is the smallest share of a picture that a training crop keeps. `mixup` and
    `cutmix` are the alpha of their Beta distributions (Zhang et al. 2018, arXiv:1710.09412; Yun
    et al. 2019, arXiv:1905.04899), 0 is off. `pos_weight_cap` weighs a label's positives by
    negatives / positives, at most this much. `ema_decay` keeps an exponential average of the
    weights beside them. `best_by` names the score that makes a checkpoint the best.
    `early_stop_epochs` ends a run after so many epochs without a better one. `timeout_s` is how
    long a rank may keep the others waiting. `find_unused_parameters` lets DDP look for
    parameters without a gradient in every step: a handicap where all have one.
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
    cudnn_benchmark: bool = False
    comm_hook: Literal["no", "fp16", "bf16", "power_sgd"] = "no"
    power_sgd_rank: PositiveInt = 4
    power_sgd_start_step: Annotated[int, Meta(ge=2)] = 10
    gradient_as_bucket_view: bool = False
    static_graph: bool = False
    find_unused_parameters: bool = False
    bucket_cap_mb: PositiveInt | None = None
    local_sgd_steps: PositiveInt | None = None
    parallelism: Literal["no", "data_parallel", "pipeline"] = "no"
    pipeline_micro_batches: PositiveInt = 4
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

    `repository` (owner/name) and `revision` (a commit hash) name a data set of the Hub, where
    `profile` is its configuration. `skip` names files that a person chose to leave out, as the
    data check named them. `separator` stands between the labels of a cell; "none" is one label
    per cell, and None leaves it to what the cells look like.
    """

    source: str
    path: str | None = None
    profile: str | None = None
    image_size: Annotated[int, Meta(ge=8, le=4096)] = 32
    skip: tuple[str, ...] = ()
    separator: Separator | None = None
    repository: str | None = None
    revision: str | None = None

    @property
    def label(self) -> str:
        """The short name a person typed: `emoji`, `products:ci`, a folder's path, `hf:a/b`."""
        if self.path and self.source in OWN_FILES:
            return self.path
        if self.repository:
            return f"hf:{self.repository}{f':{self.profile}' if self.profile else ''}"
        return f"{self.source}:{self.profile}" if self.profile else self.source


def peak_learning_rate(training: TrainingSettings, global_batch: int) -> float:
    """The learning rate for this many images per optimizer step, by the rule of the settings."""
    ratio = global_batch / training.base_batch
    factor = {"linear": ratio, "sqrt": math.sqrt(ratio), "none": 1.0}
    return training.learning_rate * factor[training.learning_rate_rule]


def batch_parts(training: TrainingSettings, num_devices: int) -> tuple[int, str]:
    """What the images of a micro-step are divided over: how many, and the word for one of them."""
    if training.parallelism == "pipeline":
        return training.pipeline_micro_batches, "micro-batch"
    return num_devices, "GPU" if training.parallelism == "data_parallel" else "process"


def counted_parts(parts: int, micro_steps: int = 1, part: str = "process") -> str:
    """What a batch is split over, in words: `4 micro-batches`, `2 processes x 4 micro-steps`."""
    words = say_count(part.lower().replace("-", "_"), parts)
    return words if micro_steps == 1 else say("request.with_micro_steps", over=words, k=micro_steps)


def refuse_uneven(
    batch: int,
    parts: int,
    micro_steps: int = 1,
    part: str = "process",
    count: Callable[[int], int | None] | None = None,
) -> None:
    """UnevenBatchError with the nearest legal values for a batch that cannot be split evenly.

    It is split over `parts` (each called a `part`) and again over `micro_steps`. No value is named
    above `count(value)`, the largest batch that the data allow; None: not known, or plainly enough.
    """
    whole = parts * micro_steps
    if batch % whole == 0:
        return
    lower = batch // whole * whole
    upper = lower + whole
    over = counted_parts(parts, micro_steps, part)
    most = count(upper) if count else None
    if most is not None and most < upper:
        largest = min(lower, most // whole * whole)
        if not largest:
            raise UnevenBatchError(say("request.uneven_few", batch=batch, over=over))
        choices = f"{largest}"
    else:
        choices = say("request.either", low=lower, high=upper) if lower else f"{upper}"
    raise UnevenBatchError(say("request.uneven", batch=batch, over=over, choices=choices))


class RunSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The complete request, resolved against one machine; the only thing the trainer reads.

    `global_batch` counts images per optimizer step over all devices and micro-steps;
    `keeps_global_batch` tells that accumulation was asked not to multiply it.
    `resume_from` is the absolute path of a checkpoint folder to continue from. `weights` is that of
    a file or a checkpoint folder whose weights training begins with. `profile_steps` are recorded
    with torch.profiler after the last epoch; they train nothing.
    `sources` tells for every resolved value where it came from (preset, flag, default, machine).
    `queue` lets it wait until its devices are free, `beside` lets it share GPUs with another run.
    `time_limit_s` counts from the launch.
    `retries` is how often a failure that another try can mend starts it anew; `retry_of` names the
    run that this one is such a try of.
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
    weights: str | None = None
    profile_steps: ProfileSteps = 0
    queue: bool = False
    beside: bool = False
    time_limit_s: PositiveInt | None = None
    retries: Annotated[int, Meta(ge=0, le=MAX_RETRIES)] = 0
    retry_of: str | None = None

    def __post_init__(self) -> None:
        refuse_contradictions(self)
        parts, part = batch_parts(self.training, self.num_devices)
        refuse_uneven(self.global_batch, parts, self.training.accumulation_steps, part)

    @property
    def channels_last(self) -> bool:
        """Whether images are laid out channels_last, and convolutions compute in it: a convolution
        follows its images wherever its weights are stored otherwise."""
        return self.training.channels_last is not False

    @property
    def weights_channels_last(self) -> bool:
        """Whether weights are stored so too; FSDP's are not, which made a step
        of ResNet-50 up to 1 % longer on an H200."""
        return self.channels_last and self.strategy != "fsdp"

    @property
    def strategy(self) -> Strategy:
        """single, data_parallel, ddp, local_sgd, model_parallel or fsdp."""
        strategy = self.accelerate.strategy
        parallelism = self.training.parallelism
        if (strategy, parallelism) == ("single", "data_parallel"):
            return "data_parallel"
        if (strategy, parallelism) == ("ddp", "pipeline"):
            return "model_parallel"
        local = strategy == "ddp" and self.training.local_sgd_steps is not None
        return "local_sgd" if local else strategy

    @property
    def num_devices(self) -> int:
        """Devices that train: the GPUs of data_parallel's process, else one for each process."""
        return len(self.gpu_ids) if self.strategy == "data_parallel" else self.num_processes

    @property
    def num_readers(self) -> int:
        """Processes that read images of their own; 1 where one of them reads for all devices."""
        one_reads = self.strategy in ("data_parallel", "model_parallel")
        return 1 if one_reads else self.num_processes

    @property
    def loader_batch(self) -> int:
        """Images that a reading process takes at once, for all devices that it feeds."""
        return self.global_batch // (self.num_readers * self.training.accumulation_steps)

    @property
    def num_micro_steps(self) -> int:
        """Forward passes of one device for one optimizer step."""
        in_pipeline = self.strategy == "model_parallel"
        chunks = self.training.pipeline_micro_batches if in_pipeline else 1
        return self.training.accumulation_steps * chunks

    @property
    def micro_batch(self) -> int:
        """Images in one forward pass of one device."""
        copies = 1 if self.strategy == "model_parallel" else self.num_devices
        return self.global_batch // (copies * self.num_micro_steps)

    @property
    def learning_rate(self) -> float:
        """The peak learning rate after the rule has been applied to the global batch."""
        return peak_learning_rate(self.training, self.global_batch)


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What Accelerate, torch and the model really gave, read back inside the trainer.

    `mixed_precision` comes from the dtype of a tensor inside the forward pass;
    `reduced_bytes_per_step` is what one rank hands to gradient reduction per optimizer step;
    `sent_bytes_per_step` is what crosses all borders of a pipeline's stages in one: activations and
    their gradients. `stage_parameters` counts the parameters of each stage.
    """

    num_processes: int
    strategy: str
    mixed_precision: str
    backend: str | None
    device: str
    device_name: str
    num_parameters: int
    num_trainable_parameters: int | None = None
    freeze: str = "no"
    sync_batchnorm: bool = False
    ema_decay: float | None = None
    bucket_bytes: tuple[int, ...] = ()
    reduced_bytes_per_step: int | None = None
    sent_bytes_per_step: int | None = None
    stage_parameters: tuple[int, ...] = ()
    pipeline_micro_batches: int | None = None
    num_devices: int | None = None
    reduce_dtype: str | None = None
    comm_hook: str = "no"
    gradient_as_bucket_view: bool = False
    static_graph: bool = False
    find_unused_parameters: bool = False
    compiled: bool = False
    channels_last: bool = False
    threads: int = 1
    environment: dict[str, str] = {}
    versions: dict[str, str] = {}
