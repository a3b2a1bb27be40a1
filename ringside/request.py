"""From what a person asks (flags or a form) to the RunSpec: defaults, overrides, refusals.

The terminal, the page and a plain `accelerate launch` all come through `resolve`, so they agree on
every default, and the RunSpec tells for each value where it came from.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ringside.checkpoints import STATE, WEIGHTS, find_resumable, folders_of, read_about
from ringside.combinations import refuse_given_idle
from ringside.data import parse_data
from ringside.data.discovery import count_training
from ringside.data.enough import refuse_too_few
from ringside.data.suiting import refuse_other_task
from ringside.durations import check_time_limit
from ringside.errors import SpecError
from ringside.hardware import Gpu, Hardware, choose_gpus
from ringside.models import check_model, refuse_unable
from ringside.overrides import locate, with_overrides
from ringside.presets import Library, Preset, PresetFile
from ringside.rundir import RunDir, runs_root
from ringside.spec import (
    MAX_PROFILE_STEPS,
    MAX_RETRIES,
    AccelerateSettings,
    DataSpec,
    Device,
    FsdpConfig,
    RunSpec,
    TrainingSettings,
    batch_parts,
    refuse_uneven,
)
from ringside.trackers import check_trackers
from ringside.weights_file import find_weights
from ringside.words import say, say_count

BF16_SINCE = (8, 0)
THREADS_VARIABLE = "OMP_NUM_THREADS"
DEFAULT_MICRO_BATCH: dict[str, int] = {"cpu": 64, "cuda": 128}
MAX_BATCH = 2**20
MAX_EPOCHS = 100_000  # as in RunSpec
MAX_SEED = 2**31 - 1  # as in RunSpec


class RunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person may say about a run; None means: take the default.

    `batch` counts images per step over all devices. An accumulation preset multiplies it by its
    number of micro-steps, unless `keep_global_batch` pins it. `weights` names a file, a checkpoint
    folder or a run. `profile` counts the steps that are recorded after the last epoch.
    `gpus` chooses GPUs by physical index, in this order. `queue` lets the run wait while its
    devices are in use; `beside` starts it on GPUs that another run uses. Without either, that is
    refused when it starts. `time_limit_s` counts from the launch; `retries` is 0 or 1.
    """

    preset: str
    data: str = "emoji"
    model: str | None = None
    epochs: int | None = None
    batch: int | None = None
    keep_global_batch: bool = False
    processes: int | None = None
    image_size: int | None = None
    separator: str | None = None
    seed: int | None = None
    weights: str | None = None
    profile: int | None = None
    gpus: tuple[int, ...] | None = None
    queue: bool = False
    beside: bool = False
    time_limit_s: int | None = None
    retries: int = 0
    overrides: dict[str, str] = {}
    request_id: str | None = None


def resolve(request: RunRequest, hardware: Hardware, library: Library | None = None) -> RunSpec:
    """The RunSpec for this machine; else SpecError, PresetError or DataError in a sentence."""
    preset = (library or Library()).get(request.preset)
    file = with_overrides(preset, request.overrides)
    changed = frozenset(".".join(locate(key)) for key in request.overrides)
    _refuse_idle(preset, file, changed)
    _refuse_both(request.queue, request.beside)
    check_trackers(file.training.trackers)
    device = _device(preset, file, hardware)
    threads = _threads(file, device, hardware)
    chosen = choose_gpus(request.gpus, hardware)
    devices, processes_from = _devices(_for_gpus(request, file), file, hardware, threads)
    processes = 1 if file.training.parallelism == "data_parallel" else devices
    data = parse_data(request.data, image_size=request.image_size, separator=request.separator)
    batch, batch_from = _global_batch(request, file.training, device, devices, data)
    model = check_model("resnet50" if request.model is None else request.model)
    _refuse_emulated_bf16(file.accelerate.mixed_precision, chosen[:devices])
    spec = RunSpec(
        preset=preset.name,
        accelerate=msgspec.structs.replace(file.accelerate, num_processes=processes),
        training=file.training,
        environment=file.environment,
        data=data,
        model=model,
        epochs=_epochs(request.epochs) or 3,
        global_batch=batch,
        keeps_global_batch=request.keep_global_batch,
        num_processes=processes,
        device=device,
        gpu_ids=tuple(gpu.index for gpu in chosen[:devices]),
        threads_per_device=threads,
        seed=_seed(request),
        weights=_weights(request.weights, model),
        profile_steps=profile_steps(request.profile),
        queue=request.queue,
        beside=request.beside,
        time_limit_s=check_time_limit(request.time_limit_s),
        retries=_retries(request.retries),
        sources=_sources(preset, request, changed)
        | _sources_here(request, data, processes_from=processes_from, batch_from=batch_from),
        request_id=request.request_id,
    )
    refuse_unable(spec)
    refuse_too_few(spec)
    refuse_other_task(spec)
    return spec


def continue_run(
    run: RunDir,
    hardware: Hardware,
    *,
    epochs: int | None = None,
    processes: int | None = None,
    gpus: tuple[int, ...] | None = None,
    queue: bool = False,
    beside: bool = False,
) -> RunSpec:
    """The spec of a run that goes on from the last checkpoint of `run`.

    More epochs, other GPUs, or another number of processes at the same global batch may be asked
    for; whether it waits for them is asked anew. Nothing is left to do only when the last epoch has
    its scores too.
    """
    spec = run.read(run.spec, RunSpec)
    if spec is None:
        raise SpecError(say("request.no_spec", id=run.id))
    folder = _resumable(run)
    total = _epochs(epochs) or spec.epochs
    _refuse_finished(run, folder, total, planned=spec.epochs)
    count, chosen = _devices_again(spec, hardware, processes, gpus)
    _refuse_emulated_bf16(spec.accelerate.mixed_precision, chosen)
    _refuse_both(queue, beside)
    num_processes = 1 if spec.strategy == "data_parallel" else count
    return msgspec.structs.replace(
        spec,
        epochs=total,
        num_processes=num_processes,
        accelerate=msgspec.structs.replace(spec.accelerate, num_processes=num_processes),
        gpu_ids=tuple(gpu.index for gpu in chosen),
        resume_from=str(folder),
        request_id=None,
        queue=queue,
        beside=beside,
        # Another try has used its own up, and goes on as what was asked for.
        retries=spec.retries if spec.retry_of is None else MAX_RETRIES,
        retry_of=None,
    )


def _resumable(run: RunDir) -> Path:
    folder = find_resumable(run)
    if folder is None:
        last, _ = folders_of(run, "last")
        if (last / WEIGHTS).is_file():
            raise SpecError(
                say("request.no_state", id=run.id, path=last, state=STATE, name=run.name)
            )
        raise SpecError(say("request.no_checkpoint", id=run.id))
    return folder


def _refuse_finished(run: RunDir, folder: Path, total: int, *, planned: int) -> None:
    """A checkpoint after which none of the `total` epochs is left."""
    about = read_about(folder)
    done = (about.unevaluated or about.epoch or 1) - 1
    if done >= total:
        key = "request.trained_so_far" if done < planned else "request.trained_all"
        raise SpecError(say(key, name=run.name, done=done))


def _devices_again(
    spec: RunSpec, hardware: Hardware, processes: int | None, gpus: tuple[int, ...] | None
) -> tuple[int, tuple[Gpu, ...]]:
    """How many devices go on and which GPUs: those of before, where they are there and fit."""
    count = spec.num_devices
    if gpus is not None or processes not in (None, count):
        request = RunRequest(preset=spec.preset, processes=processes, gpus=gpus)
        request = _for_gpus(request, spec)
        count, _ = _devices(request, spec, hardware, spec.threads_per_device)
    same = gpus is None and {gpu.index for gpu in hardware.gpus} >= set(spec.gpu_ids)
    kept = spec.gpu_ids if same and count == len(spec.gpu_ids) else gpus
    return count, choose_gpus(kept or None, hardware)[:count]


def _for_gpus(request: RunRequest, settings: PresetFile | RunSpec) -> RunRequest:
    """The request with as many devices as GPUs were chosen; SpecError where that cannot be."""
    if request.gpus is None:
        return request
    count = len(request.gpus)
    if request.processes not in (None, count):
        raise SpecError(say("request.not_as_many", processes=request.processes, count=count))
    one = settings.accelerate.strategy == "single"
    if one and settings.training.parallelism != "data_parallel" and count > 1:
        raise SpecError(say("request.one_gpu", count=count))
    return msgspec.structs.replace(request, processes=count)


def _retries(asked: int) -> int:
    if not 0 <= asked <= MAX_RETRIES:
        raise SpecError(say("request.too_many_retries", limit=MAX_RETRIES, asked=asked))
    return asked


def _refuse_both(queue: bool, beside: bool) -> None:
    if queue and beside:
        raise SpecError(say("request.queue_or_beside"))


def _refuse_idle(preset: Preset, file: PresetFile, changed: frozenset[str]) -> None:
    names = (
        {key.removeprefix("training.") for key in keys if key.startswith("training.")}
        for keys in (changed, preset.given)
    )
    refuse_given_idle(file.training, *names)


def _threads(file: PresetFile, device: Device, hardware: Hardware) -> int:
    """Threads of one device: on a CPU what the variable OMP_NUM_THREADS says, else 1."""
    text = file.environment.get(THREADS_VARIABLE)
    if device != "cpu" or text is None:
        return 1
    if not text.isdecimal() or not 1 <= int(text) <= hardware.num_cores:
        value = text or say("request.empty")
        cores = hardware.num_cores
        raise SpecError(say("request.bad_threads", name=THREADS_VARIABLE, cores=cores, value=value))
    return int(text)


def _device(preset: Preset, file: PresetFile, hardware: Hardware) -> Device:
    device = hardware.device
    if device not in preset.about.devices:
        key = "request.needs_gpu" if device == "cpu" else "request.needs_no_gpu"
        raise SpecError(say(key, name=preset.name))
    if device == "cpu" and file.accelerate.mixed_precision == "fp16":
        raise SpecError(say("request.fp16_on_cpu"))
    return device


def _refuse_emulated_bf16(precision: str, gpus: tuple[Gpu, ...]) -> None:
    """torch calls bf16 supported on a V100 too, where each operation is emulated in fp32."""
    for gpu in gpus:
        if precision == "bf16" and gpu.compute_capability and gpu.compute_capability < BF16_SINCE:
            major, minor = gpu.compute_capability
            raise SpecError(
                say(
                    "request.bf16_emulated",
                    since_major=BF16_SINCE[0],
                    since_minor=BF16_SINCE[1],
                    index=gpu.index,
                    gpu=gpu.name,
                    major=major,
                    minor=minor,
                )
            )


def _weights(text: str | None, model: str) -> str | None:
    return None if text is None else str(find_weights(runs_root(), text, model))


def profile_steps(asked: int | None) -> int:
    """Steps to record, 0 for None; SpecError for a number that is out of range."""
    steps = asked or 0
    if not 0 <= steps <= MAX_PROFILE_STEPS:
        raise SpecError(say("request.too_many_steps", limit=MAX_PROFILE_STEPS, steps=steps))
    return steps


def _seed(request: RunRequest) -> int:
    seed = request.seed or 0
    if not 0 <= seed <= MAX_SEED:
        raise SpecError(say("request.bad_seed", limit=MAX_SEED, seed=seed))
    return seed


def _devices(
    request: RunRequest, settings: PresetFile | RunSpec, hardware: Hardware, threads: int
) -> tuple[int, str]:
    """How many devices train, and where the number came from: one a process.

    nn.DataParallel has one process for all GPUs, so a count of 1 says nothing about them: it takes
    all, and a larger one takes so many.
    """
    if settings.training.parallelism != "data_parallel":
        return _processes(request, settings.accelerate, hardware, threads)
    asked = request.processes if request.gpus or request.processes != 1 else None
    count = asked or max(1, len(hardware.gpus))
    request = msgspec.structs.replace(request, processes=count)
    count, source = _processes(request, settings.accelerate, hardware, threads)
    return count, source if asked else "machine"


def _processes(
    request: RunRequest, settings: AccelerateSettings, hardware: Hardware, threads: int
) -> tuple[int, str]:
    available = hardware.num_devices(threads)
    asked = _at_least_one("processes", request.processes)
    if asked is not None:
        count, source = asked, "flag"
    elif settings.num_processes or settings.strategy == "single":
        count, source = settings.num_processes or 1, "preset"
    else:
        count, source = (available if hardware.gpus else min(2, available)), "machine"
    if count > available:
        has = say_count("gpu" if hardware.gpus else "core", available)
        if threads > 1 and not hardware.gpus:
            cores = hardware.num_cores
            has = say("request.cores_for_threads", cores=cores, threads=threads)
        refusal = say("request.too_many_processes", count=count, has=has, available=available)
        if source == "preset":
            refusal = say("request.or_adapt", sentence=refusal, preset=request.preset)
        raise SpecError(refusal)
    return count, source


def _global_batch(
    request: RunRequest, training: TrainingSettings, device: Device, devices: int, data: DataSpec
) -> tuple[int, str]:
    asked = _at_least_one("batch", request.batch)
    if asked is not None and asked > MAX_BATCH:
        raise SpecError(say("request.batch_too_large", batch=asked, limit=MAX_BATCH))
    batch = asked or DEFAULT_MICRO_BATCH[device] * devices
    k = training.accumulation_steps
    # Checked before the batch grows, so that the values offered are values of `batch`.
    parts, part = batch_parts(training, devices)
    kept, grown = (k, 1) if request.keep_global_batch else (1, k)

    def largest(enough: int) -> int | None:
        found = count_training(data, enough * grown)
        return None if found is None else found // grown

    refuse_uneven(batch, parts, kept, part, largest)
    if not request.keep_global_batch:
        batch *= k
    if batch > MAX_BATCH:
        raise SpecError(say("request.global_batch_too_large", batch=batch, limit=MAX_BATCH))
    return batch, "flag" if asked else "default"


def _epochs(value: int | None) -> int | None:
    if value is not None and value > MAX_EPOCHS:
        raise SpecError(say("request.too_many_epochs", limit=MAX_EPOCHS, value=value))
    return _at_least_one("epochs", value)


def _at_least_one(name: str, value: int | None) -> int | None:
    if value is not None and value < 1:
        raise SpecError(say("request.too_small", name=name, value=value))
    return value


def _sources(preset: Preset, request: RunRequest, changed: frozenset[str]) -> dict[str, str]:
    """For every value: flag, preset (written in the file), machine or default."""
    table = {}
    for part, kind in (("accelerate", AccelerateSettings), ("training", TrainingSettings)):
        for name in kind.__struct_fields__:
            key = f"{part}.{name}"
            given = any(k == key or k.startswith(f"{key}.") for k in preset.given)
            table[key] = "flag" if key in changed else "preset" if given else "default"
    if any(key.rpartition(".")[2] in FsdpConfig.__struct_fields__ for key in changed):
        table["accelerate.fsdp_config"] = "flag"
    defaults = RunRequest(preset=preset.name)
    spelled = {"image_size": "data.image_size", "profile": "profile_steps"}
    for name in (
        "data", "model", "epochs", "seed", "image_size", "weights", "profile", "queue", "beside",
        "time_limit_s", "retries",
    ):  # fmt: skip
        key = spelled.get(name, name)
        table[key] = "default" if getattr(request, name) == getattr(defaults, name) else "flag"
    table |= dict.fromkeys(("device", "gpu_ids", "threads_per_device"), "machine")
    threads = f"environment.{THREADS_VARIABLE}"
    if threads in changed or threads in preset.given:
        table["threads_per_device"] = "flag" if threads in changed else "preset"
    return table


def _sources_here(
    request: RunRequest, data: DataSpec, *, processes_from: str, batch_from: str
) -> dict[str, str]:
    """The same for what became known only on this machine and of these data."""
    table = {
        "num_processes": processes_from,
        "global_batch": batch_from,
        "accelerate.num_processes": processes_from,
    }
    if request.gpus is not None:
        table["gpu_ids"] = "flag"
    if data.separator:
        table["data.separator"] = "flag"
    return table
