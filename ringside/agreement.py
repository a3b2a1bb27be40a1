"""What was asked for beside what came, field by field: the trainer refuses where they differ."""

from __future__ import annotations

from ringside.spec import Observed, RunSpec


def asked_and_got(requested: RunSpec, observed: Observed) -> dict[str, tuple[object, object]]:
    """Each field that a set-up can be asked for, with its two values; equal where all is well."""
    asked, training = requested, requested.training
    pairs: dict[str, tuple[object, object]] = {
        "num_processes": (asked.num_processes, observed.num_processes),
        "num_devices": (asked.num_devices, observed.num_devices),
        "strategy": (asked.strategy, observed.strategy),
        "mixed_precision": (asked.accelerate.mixed_precision, observed.mixed_precision),
        "device": (asked.device, observed.device),
        "comm_hook": (training.comm_hook, observed.comm_hook),
        "gradient_as_bucket_view": (
            training.gradient_as_bucket_view,
            observed.gradient_as_bucket_view,
        ),
        "static_graph": (training.static_graph, observed.static_graph),
        "find_unused_parameters": (
            training.find_unused_parameters,
            observed.find_unused_parameters,
        ),
        "channels_last": (asked.weights_channels_last, observed.channels_last),
        "compile": (training.compile, observed.compiled),
        "freeze": (training.freeze, observed.freeze),
        "sync_batchnorm": (training.sync_batchnorm, observed.sync_batchnorm),
        "ema_decay": (training.ema_decay, observed.ema_decay),
    }
    if asked.strategy == "fsdp":
        pairs["reduce_dtype"] = (training.reduce_dtype, observed.reduce_dtype)
    if asked.strategy == "model_parallel":
        pairs["pipeline_micro_batches"] = (
            training.pipeline_micro_batches,
            observed.pipeline_micro_batches,
        )
        pairs["number of stages"] = (asked.num_processes, len(observed.stage_parameters))
        pairs["parameters of all stages"] = (
            observed.num_parameters,
            sum(observed.stage_parameters),
        )
    if asked.device == "cpu":
        pairs["threads"] = (asked.threads_per_device, observed.threads)
    return pairs
