"""Speed-up and efficiency, and the baselines they are measured against.

Speed-up = images/s of a run ÷ images/s of its baseline. The baseline is the preset `single` with
the same model, data, image size, precision, seed, threads per device and training settings, but for
those that only several devices have and those without effect on speed, on the same kind of device.
Warm-up (the first epoch) is left out of both. Without such a baseline there is no number, and
`reason` says what is missing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from ringside.errors import RunDirError
from ringside.run import RunRecord, fold_run
from ringside.rundir import RunDir, list_run_dirs
from ringside.spec import AccelerateSettings, RunSpec, TrainingSettings
from ringside.words import catalogue, say

Scaling = Literal["weak", "strong"]
BASELINE = "single"
NEARLY = 2
"""In so many settings a run may differ to be named where there is no baseline."""
DISTRIBUTED_SETTINGS = (
    "accumulation_steps", "comm_hook", "power_sgd_rank", "power_sgd_start_step", "reduce_dtype",
    "gradient_as_bucket_view", "static_graph", "find_unused_parameters", "sync_batchnorm",
    "bucket_cap_mb", "local_sgd_steps", "parallelism", "pipeline_micro_batches",
)  # fmt: skip
# How long a step takes does not depend on them: numbers that enter it as values, the loss of a few
# logits, what happens between epochs or beside training. Of `channels_last` and `decoder` not the
# wish counts but what came of it, which is compared by itself.
WITHOUT_EFFECT_ON_SPEED = frozenset({
    "learning_rate", "learning_rate_rule", "base_batch", "warmup_epochs", "label_smoothing",
    "pos_weight_cap", "pretrained", "best_by", "early_stop_epochs", "trackers", "timeout_s",
    "channels_last", "decoder",
})  # fmt: skip


class SpeedUp(msgspec.Struct, frozen=True, kw_only=True):
    """A speed-up, or the reason why there is none.

    weak: equal images per device and micro-step; strong: equal images per optimizer step.
    `efficiency_ratio` is the speed-up divided by the number of devices.
    """

    value: float | None = None
    scaling: Scaling | None = None
    efficiency_ratio: float | None = None
    samples_per_s: float | None = None
    baseline_id: str | None = None
    baseline_samples_per_s: float | None = None
    reason: str | None = None


def baseline_of(spec: RunSpec) -> RunSpec:
    """The run to measure first: one device, the same images per device, everything else equal.

    The stages of a pipeline share the work of each step, and BatchNorm sees one micro-batch at a
    time: one device does the same step by accumulating as many micro-batches.
    """
    plain = TrainingSettings()
    micro_steps = spec.num_micro_steps if spec.strategy == "model_parallel" else 1
    # Settings that only several devices have: at their defaults on one.
    training = msgspec.structs.replace(
        spec.training,
        **{name: getattr(plain, name) for name in DISTRIBUTED_SETTINGS}
        | {"accumulation_steps": micro_steps},
    )
    accelerate = AccelerateSettings(
        distributed_type="NO",
        mixed_precision=spec.accelerate.mixed_precision,
        num_processes=1,
    )
    return msgspec.structs.replace(
        spec,
        preset=BASELINE,
        accelerate=accelerate,
        training=training,
        environment={},
        num_processes=1,
        global_batch=spec.micro_batch * micro_steps,
        keeps_global_batch=spec.keeps_global_batch or micro_steps > 1,
        gpu_ids=spec.gpu_ids[:1],
        request_id=None,
        resume_from=None,
        profile_steps=0,
    )


def differences(a: RunSpec, b: RunSpec) -> list[str]:
    """What keeps the speeds of two requests from being compared; empty when nothing does."""
    pairs = {
        "device": (a.device, b.device),
        "threads per device": (a.threads_per_device, b.threads_per_device),
    }
    return task_differences(a, b) + _unequal(pairs)


def task_differences(a: RunSpec, b: RunSpec) -> list[str]:
    """What keeps even the scores of two requests from being compared; empty when nothing does."""
    pairs = {
        "model": (a.model, b.model),
        "data": (a.data.label, b.data.label),
        "image size": (a.data.image_size, b.data.image_size),
    }
    return _unequal(pairs)


def _unequal(pairs: Mapping[str, tuple[object, object]]) -> list[str]:
    return [apart(name, x, y) for name, (x, y) in pairs.items() if x != y]


def apart(name: str, a: object, b: object) -> str:
    """`image size: 32 and 64`; a setting keeps its name in every language."""
    told = catalogue().get(f"apart.{name.replace(' ', '_')}", name)
    a, b = (say("apart.none") if value is None else value for value in (a, b))
    return say("apart.pair", name=told, a=a, b=b)


def speed_differences(a: RunSpec, b: RunSpec) -> list[str]:
    """In what else the work of one device differs, or the way it is done; empty when in nothing."""
    pairs: dict[str, tuple[object, object]] = {
        "precision": (a.accelerate.mixed_precision, b.accelerate.mixed_precision),
        "channels_last": (a.channels_last, b.channels_last),
        "seed": (a.seed, b.seed),
    }
    several = set(DISTRIBUTED_SETTINGS) - {"accumulation_steps"}
    for name in TrainingSettings.__struct_fields__:
        if name not in WITHOUT_EFFECT_ON_SPEED | several:
            pairs[name] = (getattr(a.training, name), getattr(b.training, name))
    return _unequal(pairs)


def scaling_of(spec: RunSpec, baseline: RunSpec) -> Scaling | None:
    """Whether a `single` spec is a baseline of `spec`, and in which sense."""
    # The cheap questions first: a list asks for every pair of runs.
    if baseline.preset != BASELINE or baseline.model != spec.model:
        return None
    wanted = baseline_of(spec)
    if differences(wanted, baseline):
        return None
    if speed_differences(wanted, baseline):
        return None
    if spec.strategy == "model_parallel":
        return "strong" if baseline.global_batch == spec.global_batch else None
    if baseline.micro_batch == spec.micro_batch:
        return "weak"
    return "strong" if baseline.global_batch == spec.global_batch else None


def find_baseline(root: Path, record: RunRecord) -> RunRecord | None:
    """The newest measured baseline of a run below `root`; weak scaling goes before strong."""
    specs = ((run.read(run.spec, RunSpec), run) for run in list_run_dirs(root))
    found = ((spec, functools.partial(_fold, run)) for spec, run in specs if spec is not None)
    return choose_baseline(record, found)


def choose_baseline(
    record: RunRecord, candidates: Iterable[tuple[RunSpec, Callable[[], RunRecord | None]]]
) -> RunRecord | None:
    """The first measured baseline of a run; weak scaling goes before strong.

    A candidate is its spec and what reads its record, which is only called where the spec fits.
    """
    if record.spec is None or record.spec.preset == BASELINE:
        return None
    found: dict[Scaling, RunRecord] = {}
    for spec, read in candidates:
        scaling = scaling_of(record.spec, spec)
        if scaling is None or scaling in found:
            continue
        candidate = read()
        if candidate is None or candidate.steady_samples_per_s is None:
            continue
        if not (unlike(record, candidate) or _other_decoder(record, candidate)):
            found[scaling] = candidate
            if scaling == "weak":
                break
    return found.get("weak") or found.get("strong")


def _fold(run: RunDir) -> RunRecord | None:
    try:
        return fold_run(run)
    except RunDirError:
        return None  # written by a newer Ringside


def speedup(record: RunRecord, baseline: RunRecord | None) -> SpeedUp:
    """The speed-up of a run against its baseline, or the reason why there is no number."""
    if record.spec is None:
        return SpeedUp(reason=say("speedup.no_spec"))
    rate = record.steady_samples_per_s
    if record.spec.preset == BASELINE:
        return SpeedUp(samples_per_s=rate, reason=say("speedup.is_baseline"))
    if baseline is None or baseline.spec is None:
        return SpeedUp(samples_per_s=rate, reason=say("speedup.no_baseline"))
    scaling, wanted = scaling_of(record.spec, baseline.spec), baseline_of(record.spec)
    apart = differences(wanted, baseline.spec) + speed_differences(wanted, baseline.spec)
    apart += unlike(record, baseline) + _other_decoder(record, baseline)
    if scaling is None or apart:
        why = "; ".join(apart) or say("speedup.other_settings")
        reason = say("speedup.not_its_baseline", baseline=baseline.id, why=why)
        return SpeedUp(samples_per_s=rate, reason=reason)
    base_rate = baseline.steady_samples_per_s
    if rate is None or base_rate is None:
        key = _why_no_rate(record) if rate is None else "speedup.baseline_too_short"
        return SpeedUp(baseline_id=baseline.id, samples_per_s=rate, reason=say(key))
    value = rate / base_rate
    return SpeedUp(
        value=value,
        scaling=scaling,
        efficiency_ratio=value / record.spec.num_devices,
        samples_per_s=rate,
        baseline_id=baseline.id,
        baseline_samples_per_s=base_rate,
    )


def _why_no_rate(record: RunRecord) -> str:
    is_spoilt = any(row.profiled for row in record.epochs)
    return "speedup.profiled" if is_spoilt else "speedup.run_warms_up"


def speedup_of(root: Path, record: RunRecord) -> SpeedUp:
    """Find the baseline and divide; where there is none, say which run is nearly one."""
    baseline = find_baseline(root, record)
    found = speedup(record, baseline)
    if record.spec is None or record.spec.preset == BASELINE or baseline is not None:
        return found
    near = _nearly(root, record, record.spec)
    reason = f"{found.reason}; {near}" if near else found.reason
    return msgspec.structs.replace(found, reason=reason)


def _nearly(root: Path, record: RunRecord, spec: RunSpec) -> str | None:
    """The newest measured run of one device that differs in the fewest settings, and in which."""
    asked: list[tuple[RunDir, list[str]]] = []
    for run in list_run_dirs(root):
        one = run.read(run.spec, RunSpec)
        if one is not None and one.preset == BASELINE:
            asked.append((run, _obstacles(spec, one)))
    best: tuple[str, list[str]] | None = None
    for run, why in sorted(asked, key=lambda pair: len(pair[1])):
        if len(why) > NEARLY or (best is not None and len(why) >= len(best[1])):
            break  # Records are only read of runs whose requests could be nearer than the best.
        candidate = _fold(run)
        if candidate is None or candidate.steady_samples_per_s is None:
            continue
        why = why + unlike(record, candidate) + _other_decoder(record, candidate)
        if 0 < len(why) <= NEARLY and (best is None or len(why) < len(best[1])):
            best = run.name, why
    return say("speedup.nearly", run=best[0], why="; ".join(best[1])) if best else None


def _obstacles(spec: RunSpec, one: RunSpec) -> list[str]:
    """What keeps a request of one device from being a baseline of `spec`; see `scaling_of`."""
    wanted = baseline_of(spec)
    why = differences(wanted, one) + speed_differences(wanted, one)
    is_weak = spec.strategy != "model_parallel" and one.micro_batch == wanted.micro_batch
    if is_weak or one.global_batch == spec.global_batch:
        return why
    return [*why, apart("batch", wanted.micro_batch, one.micro_batch)]


def unlike(a: RunRecord, b: RunRecord) -> list[str]:
    """Differences that only the started runs know: the data's content and the device's name."""
    if a.started is None or b.started is None or a.observed is None or b.observed is None:
        return []
    pairs = {"device name": (a.observed.device_name, b.observed.device_name)}
    return other_content(a, b) + _unequal(pairs)


def other_content(a: RunRecord, b: RunRecord) -> list[str]:
    """Whether data of one name turned out to be other data."""
    if a.started is None or b.started is None:
        return []
    pairs = {"content of the data": (a.started.data_fingerprint, b.started.data_fingerprint)}
    return _unequal(pairs)


def _other_decoder(a: RunRecord, b: RunRecord) -> list[str]:
    """Whether the pictures were really decoded elsewhere, whatever was asked for."""
    if a.started is None or b.started is None or a.started.decoder == b.started.decoder:
        return []
    return [apart("decoder", a.started.decoder, b.started.decoder)]
