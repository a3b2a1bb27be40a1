"""Measures this machine, a request or a model, each in fresh processes that end with the call.

    sweep = measure_sweep(read_hardware(), num_ranks=2, say=print)
    Store(runs_root()).save(sweep)

Nothing is stored here. Whoever asks sees to it that the devices are idle. Ranks meet over loopback.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from ringside.environment_lint import lint
from ringside.errors import LaunchError, RingsideError
from ringside.hardware import Hardware
from ringside.launch.probe import launch_probe, probe_folder
from ringside.measurements import (
    Arm,
    ArmName,
    Description,
    Experiment,
    Series,
    StepTiming,
    Sweep,
)
from ringside.measurements.derived import one_device, spec_of_arm
from ringside.measurements.keys import key_of_machine, key_of_spec, transport_variables
from ringside.measurements.transport import log_variables, transport_of
from ringside.rundir import RunDir
from ringside.spec import AccelerateSettings, DataSpec, RunSpec, TrainingSettings
from ringside.words import DEFAULT, remembering
from ringside.words import say as word

Say = Callable[[str], None]

MIB = 2**20
TRIAL_BYTES = (1 * MIB, 32 * MIB, 128 * MIB)
TRIAL_S = 2.0
TRIAL_TIMEOUT_S = 25.0
START_S = 60.0
SOCKETS = {"NCCL_SOCKET_NTHREADS": "2", "NCCL_NSOCKS_PERTHREAD": "4"}
# NCCL_MIN_CTAS took the place of NCCL_MIN_NCHANNELS long before the NCCL of torch 2.11 (2.28).
TRIALS: tuple[dict[str, str], ...] = (
    {"NCCL_ALGO": "Ring"}, {"NCCL_ALGO": "Tree"}, {"NCCL_PROTO": "Simple"},
    {"NCCL_PROTO": "LL128"}, {"NCCL_MIN_CTAS": "16"}, {"NCCL_P2P_DISABLE": "1"},
    {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},
)  # fmt: skip

WITHOUT: dict[ArmName, list[str]] = {
    "one": [],
    "many": [],
    "many_without_reduction": ["--without-reduction"],
    "many_synthetic": ["--synthetic"],
    "many_synthetic_without_reduction": ["--synthetic", "--without-reduction"],
}
ALONE = ("many", "many_synthetic")
NUM_ROUNDS = 2


def _in_silence(_sentence: str) -> None:
    """Nobody wants to hear how far it is."""


def measure_sweep(
    hardware: Hardware, num_ranks: int, *, environment: Mapping[str, str] | None = None,
    seconds: float = 12.0, sizes: Sequence[int] = (), trials: bool = True,
    say: Say = _in_silence, timeout_s: float = 180.0,
) -> Sweep:  # fmt: skip
    """Collectives between the first `num_ranks` devices, and on GPUs what other variables do.

    `environment` is added to os.environ. `seconds` are for repeats; `sizes` (bytes), such as a
    model's buckets, are measured beside the usual ones. `trials` cost some 50 s more; the one that
    changes nothing becomes the `control`, what fails among them a sentence in `failed`.
    LaunchError when the sweep itself cannot be measured.
    """
    spec = _sweep_spec(hardware, num_ranks, dict(environment or {}))
    with probe_folder() as run:
        say(word("probes.sweep", n=num_ranks))
        wanted = ["--bytes", *map(str, sizes)] if sizes else []
        found = launch_probe(
            spec, run, "sweep", ["--seconds", str(seconds), *wanted], Sweep,
            timeout_s=timeout_s, environment=log_variables(run.path),
        )  # fmt: skip
        transport = transport_of(run.path)
        series = tuple(msgspec.structs.replace(one, transport=transport) for one in found.series)
        tried: tuple[Series, ...] = ()
        failed: tuple[str, ...] = ()
        if trials and hardware.device == "cuda":
            tried, failed = _measure_trials(spec, run, transport, say)
    return msgspec.structs.replace(
        found,
        key=key_of_machine(hardware, num_ranks, os.environ | spec.environment),
        series=series + tuple(one for one in tried if one.environment),
        control=next((one for one in tried if not one.environment), None),
        failed=failed,
    )


def _measure_trials(
    spec: RunSpec, run: RunDir, transport: str | None, say: Say
) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    chosen = trials_for(os.environ | spec.environment, transport)
    say(word("probes.trials", n=len(chosen)))
    arguments = ["--seconds", str(TRIAL_S), "--timeout", str(TRIAL_TIMEOUT_S)]
    arguments += ["--bytes", *map(str, TRIAL_BYTES)]
    for one in chosen:
        arguments += ["--environment", msgspec.json.encode(one).decode()]
    timeout_s = START_S + len(chosen) * TRIAL_TIMEOUT_S
    try:
        with remembering() as english:
            tried = launch_probe(
                spec, run, "trials", arguments, Sweep, timeout_s=timeout_s, alone=True
            )
    except RingsideError as error:  # it is kept with the sweep
        return (), (word("probes.no_trials", DEFAULT, why=english(str(error))),)
    return tried.series, tried.failed


def trials_for(environment: Mapping[str, str], transport: str | None) -> tuple[dict[str, str], ...]:
    """The variables to try: not those that are so already, and those of sockets on sockets only.

    What undoes a handicap comes first, then nothing at all: what two launches differ by.
    """
    on_sockets = transport is not None and transport.startswith("NET/Socket")
    usual = ((SOCKETS,) if on_sockets else ()) + TRIALS
    undone = undoing(environment)
    first: tuple[dict[str, str], ...] = (undone, {}) if undone else ({},)
    return first + tuple(one for one in usual if not one.items() <= environment.items())


def undoing(environment: Mapping[str, str]) -> dict[str, str]:
    """The opposite of each switch of NCCL's that shuts a way; empty where none does."""
    names = [
        one.name
        for one in lint(environment)
        if one.level == "handicap" and one.name.startswith("NCCL_")
    ]
    return {
        name: opposite
        for name in names
        for ending, opposite in (("_DISABLE", "0"), ("_ENABLE", "1"))
        if name.endswith(ending)
    }


def _sweep_spec(hardware: Hardware, num_ranks: int, environment: dict[str, str]) -> RunSpec:
    """A request of which only the process group is made."""
    if num_ranks < 2:
        raise LaunchError(word("probes.too_few_ranks", num_ranks=num_ranks))
    if hardware.gpus and num_ranks > len(hardware.gpus):
        num_gpus = len(hardware.gpus)
        raise LaunchError(word("probes.too_few_gpus", num_ranks=num_ranks, num_gpus=num_gpus))
    return RunSpec(
        preset="ddp",
        accelerate=AccelerateSettings(distributed_type="MULTI_GPU", num_processes=num_ranks),
        training=TrainingSettings(),
        environment=environment,
        data=DataSpec(source="synthetic"),
        global_batch=num_ranks,
        num_processes=num_ranks,
        device=hardware.device,
        gpu_ids=tuple(gpu.index for gpu in hardware.gpus[:num_ranks]),
    )


def measure_experiment(
    spec: RunSpec, hardware: Hardware, *, environment: Mapping[str, str] | None = None,
    seconds_per_arm: float = 12.0, say: Say = _in_silence, timeout_s: float = 300.0,
    keep: Callable[[Experiment], object] = lambda _: None,
) -> Experiment:  # fmt: skip
    """Every arm twice, in an order that begins with `many` and then in the opposite one, so that
    drift shows as spread. All read their images with the decoder that `many` came to.

    `environment`: what the ranks of a run had; its transport variables then replace those of
    os.environ, so that the run's own way of the bytes is measured.
    An arm that cannot be measured has its `problem`. A request of one device has only the arms
    `many` (itself) and `many_synthetic`. `timeout_s` for each launch. `keep` gets the experiment as
    it stands from the end of the way there on, after each arm, so that whoever cuts it off loses
    one; its time is that of the beginning. LaunchError when no arm could be measured.
    """
    begin = time.time()
    _refuse_absent(spec, hardware)
    shell = transport_variables(os.environ)
    transport = shell if environment is None else transport_variables(environment)
    names = [name for name in WITHOUT if spec.num_devices > 1 or name in ALONE]
    arms = {name: _unmeasured(spec, name) for name in names}
    latest: Experiment | None = None
    refusals: dict[ArmName, str] = {}
    order = _there_and_back(names)

    def so_far(latest: Experiment) -> Experiment:
        return msgspec.structs.replace(
            latest, t=begin, key=key_of_spec(spec), spec=spec, arms=tuple(arms.values()),
            transport=transport_variables(transport | spec.environment),
        )  # fmt: skip

    for number, name in enumerate(order, start=1):
        if arms[name].problem is not None:
            continue  # It would not start a second time either.
        say(word("probes.arm", number=number, total=len(order), arm=word(f"probes.{name}")))
        try:
            with remembering() as english:
                latest = _launch_arm(
                    _with_decoder(spec_of_arm(spec, name), arms["many"].decoder), name,
                    seconds=seconds_per_arm / NUM_ROUNDS, timeout_s=timeout_s,
                    environment=dict.fromkeys(shell) | transport | spec.environment,
                )  # fmt: skip
        except RingsideError as error:
            refusals[name] = str(error)
            say(refusals[name])
            if not arms[name].step_ms:
                problem = english(refusals[name])  # it is kept
                arms[name] = msgspec.structs.replace(arms[name], problem=problem)
            continue
        arms[name] = _joined(arms[name], latest.arms[0])
        if number >= len(names):
            keep(so_far(latest))
    if latest is None:
        raise LaunchError(refusals["many"])
    return so_far(latest)


def measure_step(
    spec: RunSpec, hardware: Hardware, *, seconds: float = 8.0, decoder: str | None = None,
    synthetic: bool = False, timeout_s: float = 300.0,
) -> StepTiming:  # fmt: skip
    """The request's own step, with its images or with made-up ones that lie on the device.

    `decoder`: what reads the images, where an earlier measurement chose. LaunchError when it cannot
    be measured.
    """
    _refuse_absent(spec, hardware)
    name: ArmName = "many_synthetic" if synthetic else "many"
    found = _launch_arm(
        _with_decoder(spec_of_arm(spec, "many"), decoder), name, seconds=seconds,
        timeout_s=timeout_s, environment=dict(spec.environment),
    )  # fmt: skip
    return StepTiming(
        t=found.t, key=key_of_spec(spec), spec=spec, device_name=found.device_name,
        arm=found.arms[0], versions=found.versions, num_cores=found.num_cores,
        transport=transport_variables(os.environ | spec.environment),
    )  # fmt: skip


def _there_and_back(names: Sequence[ArmName]) -> list[ArmName]:
    there = sorted(names, key=lambda name: name != "many")
    return [*there, *reversed(there)]


def _launch_arm(
    spec: RunSpec, name: ArmName, *, seconds: float, timeout_s: float,
    environment: Mapping[str, str | None],
) -> Experiment:  # fmt: skip
    """One round of one arm, in processes of its own."""
    arguments = ["--seconds", str(seconds), *WITHOUT[name]]
    with probe_folder() as run:
        return launch_probe(
            spec, run, "step", arguments, Experiment, timeout_s=timeout_s, environment=environment
        )


def _with_decoder(spec: RunSpec, decoder: str | None) -> RunSpec:
    """Left to `auto`, each launch would choose anew, and two arms might read differently."""
    if decoder is None or spec.data.source == "synthetic":
        return spec
    training = msgspec.structs.replace(spec.training, decoder=decoder)
    return msgspec.structs.replace(spec, training=training)


def _unmeasured(spec: RunSpec, name: ArmName) -> Arm:
    return Arm(name=name, num_processes=spec_of_arm(spec, name).num_processes)


def _joined(first: Arm, second: Arm) -> Arm:
    """The blocks of both rounds; of two waits the mean, of two peaks the higher."""
    waits = [arm.data_ms for arm in (first, second) if arm.data_ms is not None]
    peaks = [arm.memory_bytes for arm in (first, second) if arm.memory_bytes is not None]
    return msgspec.structs.replace(
        first,
        step_ms=first.step_ms + second.step_ms,
        data_ms=sum(waits) / len(waits) if waits else None,
        memory_bytes=max(peaks, default=None),
        collectives_per_step=second.collectives_per_step,
        decoder=second.decoder,
    )


def measure_description(
    spec: RunSpec, hardware: Hardware, *, seconds: float = 6.0,
    say: Say = _in_silence, timeout_s: float = 600.0,
) -> Description:  # fmt: skip
    """The request's step on one device at its own per-device batch and at half of it.

    `seconds` of steps for each. LaunchError when it cannot be measured.
    """
    _refuse_absent(spec, hardware)
    say(word("probes.describe", model=spec.model))
    with probe_folder() as run:
        return launch_probe(
            spec_of_arm(one_device(spec), "many"), run, "describe", ["--seconds", str(seconds)],
            Description, timeout_s=timeout_s,
        )  # fmt: skip


def _refuse_absent(spec: RunSpec, hardware: Hardware) -> None:
    """Devices of the request that this machine does not show."""
    if spec.device != hardware.device:
        on_gpus = spec.device == "cuda"
        raise LaunchError(word("probes.needs_gpus" if on_gpus else "probes.needs_cpu"))
    shown = {gpu.index for gpu in hardware.gpus}
    absent = [str(index) for index in spec.gpu_ids if index not in shown]
    if absent:
        raise LaunchError(word("probes.absent", names=", ".join(absent)))
