"""What has to be equal for a measurement to fit: a machine, a step, a model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from ringside.hardware import Hardware
from ringside.spec import RunSpec, TrainingSettings

TRANSPORT_PREFIXES = ("NCCL_", "GLOO_")
LOGGING_PREFIX = "NCCL_DEBUG"

# What a request says about other things than a step's time.
_BESIDE_THE_STEP = (
    "format", "preset", "sources", "request_id", "epochs", "seed", "resume_from", "weights",
    "keeps_global_batch", "profile_steps",
)  # fmt: skip
_BESIDE_THE_SETTINGS = (
    "learning_rate", "learning_rate_rule", "base_batch", "weight_decay", "warmup_epochs",
    "pretrained", "best_by", "save_every_steps", "early_stop_epochs", "trackers", "timeout_s",
    "pos_weight_cap", "label_smoothing",
)  # fmt: skip
# Neither does how a run waits and ends. These stay at their defaults instead of going, so that what
# was measured of runs that wait for nobody still fits.
_OF_THE_RUN: dict[str, Any] = {
    "queue": False, "beside": False, "time_limit_s": None, "retries": 0, "retry_of": None,
}  # fmt: skip
# What shapes the step of one device, whatever ties it to the others.
_OF_THE_MODEL = (
    "optimizer", "momentum", "clip_norm", "channels_last", "compile", "compile_mode",
    "cudnn_benchmark", "freeze", "ema_decay",
)  # fmt: skip


NEITHER = "neither images nor weights"


def transport_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that may change how collectives travel; those of logging do not."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(TRANSPORT_PREFIXES) and not name.startswith(LOGGING_PREFIX)
    }


def key_of_machine(hardware: Hardware, num_ranks: int, environment: Mapping[str, str]) -> str:
    """The devices of the first `num_ranks` ranks, torch (NCCL comes with it) and the transport.

    `environment` is everything that a rank gets, os.environ included.
    """
    devices: list[Any] = [(gpu.name, gpu.uuid) for gpu in hardware.gpus[:num_ranks]]
    cpu = [hardware.num_cores, hardware.memory_bytes, hardware.system]
    return _digest(
        {
            "devices": devices or cpu,
            "num_ranks": num_ranks,
            "torch": hardware.versions.get("torch"),
            "transport": transport_variables(environment),
        }
    )


def fields_of_step(spec: RunSpec) -> dict[str, Any]:
    """All that makes a step of this request as long as it is, on a machine that is not named.

    A setting at its default does not count, so that a new one leaves old measurements valid.
    Of `channels_last` counts what it comes to; false has another key than it had while images
    stayed channels_last.
    """
    fields: dict[str, Any] = msgspec.to_builtins(spec)
    for name in _BESIDE_THE_STEP:
        fields.pop(name, None)
    fields |= _OF_THE_RUN
    defaults = msgspec.to_builtins(TrainingSettings())
    fields["training"] = {
        name: value
        for name, value in fields["training"].items()
        if name not in _BESIDE_THE_SETTINGS and value != defaults[name]
    }
    fields["training"].pop("channels_last", None)
    if not spec.channels_last:
        fields["training"]["channels_last"] = NEITHER
    return fields


def key_of_spec(spec: RunSpec) -> str:
    """Equal where the steps of two requests are: see `fields_of_step`."""
    return _digest(fields_of_step(spec))


def key_of_model(spec: RunSpec) -> str:
    """The step of one device of this request at any batch: single, DDP and FSDP share it.

    The data stand for the number of classes. `channels_last` is what the request comes to.
    """
    settings = msgspec.structs.asdict(spec.training)
    data = spec.data
    return _digest(
        {
            **{name: settings[name] for name in _OF_THE_MODEL},
            "channels_last": spec.channels_last or NEITHER,
            "model": spec.model,
            "precision": spec.accelerate.mixed_precision,
            "data": [data.source, data.path, data.profile, data.repository, data.revision],
            "image_size": data.image_size,
            "device": spec.device,
            "threads": spec.threads_per_device if spec.device == "cpu" else None,
        }
    )


def _digest(value: Any) -> str:
    encoded = msgspec.json.encode(value, order="sorted")
    return hashlib.sha256(encoded).hexdigest()[:16]
