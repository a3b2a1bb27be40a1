"""Cases made by hand, of which every figure is known: traces, runs, logs, sweeps, descriptions."""

from __future__ import annotations

from typing import Any

import msgspec

from ringside.events import EpochTrained, RunStarted, WindowTimed
from ringside.hardware import Gpu, Hardware
from ringside.machine import Machine
from ringside.measurements import Arm, Description, Experiment, Point, Series, StepProfile, Sweep
from ringside.nccl_log import NcclLog
from ringside.nccl_log.facts import Communicator, Edge, Nic, Pattern, Rank
from ringside.run import RunRecord, fold_events
from ringside.spec import (
    AccelerateSettings,
    DataSpec,
    FsdpConfig,
    Observed,
    RunSpec,
    TrainingSettings,
)
from ringside.speedup import baseline_of
from ringside.trace.facts import Breakdown, Bucket, Facts, HostFacts, RankFacts
from ringside.trace.totals import Totals

WALL_US = 100_000.0
STEPS = 4
MIB = 2**20
PARAMETERS = 23_712_932  # ResNet-50 with 100 classes
BUCKETS = (5_030_288, 27_291_648, 26_255_360, 26_550_272, 9_724_160)


def rank_facts(rank: int = 0, *, num_events: int = 3000, **given: Any) -> RankFacts:
    """A rank whose step has these shares (`compute=0.5`); the rest is `other_idle`.

    Names of `HostFacts` and `RankFacts` may be given too.
    """
    parts = [name.removesuffix("_us") for name in Breakdown.__struct_fields__ if name != "wall_us"]
    shares = {name: given.pop(name, 0.0) for name in parts}
    shares["other_idle"] += 1 - sum(shares.values())
    host = dict.fromkeys(HostFacts.__struct_fields__, 0.0)
    host |= {name: given.pop(name) for name in tuple(given) if name in host}
    exposed = (shares["exposed_transfer"] + shares["exposed_wait"]) * WALL_US
    overlapped = given.pop("overlapped_us", exposed)
    compute = shares["compute"] * WALL_US
    fields: dict[str, Any] = {
        "rank": rank, "file": f"rank{rank}.json.gz", "world_size": 2, "num_events": 10 * num_events,
        "num_steps": STEPS, "num_devices": 1, "num_data_parallel": 0.0, "is_cpu_estimate": False,
        "num_collectives": 15, "num_matched": 15,
        "totals": Totals(
            num_events=num_events, comm_us=exposed + overlapped, overlapped_us=overlapped,
            compute_us=compute, idle_us=0.0, span_us=WALL_US,
        ),
        "transfer_us": shares["exposed_transfer"] * WALL_US,
        "wait_us": shares["exposed_wait"] * WALL_US,
        "hidden_transfer_us": shares["exposed_transfer"] * WALL_US, "num_persistent": 0.0,
        "breakdown": Breakdown(
            wall_us=WALL_US, **{f"{name}_us": share * WALL_US for name, share in shares.items()}
        ),
        "host": HostFacts(**host), "steps": (), "buckets": (), "num_all_reduces": 5.0,
        "all_reduce_bytes": 19e6, "all_reduce_us": 5000.0, "reduce_stretch_us": 0.0,
    }  # fmt: skip
    return RankFacts(**fields | given)


def facts(*ranks: RankFacts, **given: Any) -> Facts:
    """Two equal ranks, unless some are given."""
    return Facts(ranks=ranks or (rank_facts(0, **given), rank_facts(1, **given)))


def bucket(num_bytes: int, gb_per_s: float, dtype: str = "Float") -> Bucket:
    """One all-reduce a step between two ranks at a bus bandwidth."""
    us = num_bytes / gb_per_s / 1e3
    return Bucket(
        operation="all_reduce", num_bytes=num_bytes, dtype=dtype, group_size=2, num_per_step=1.0,
        duration_us=us, transfer_us=us, busbw_bytes_per_s=gb_per_s * 1e9,
    )  # fmt: skip


def request(
    preset: str = "ddp", *, batch: int = 128, precision: str = "no", processes: int = 2,
    settings: dict[str, Any] | None = None, **fields: Any,
) -> RunSpec:  # fmt: skip
    """What was asked for: ResNet-50 on two GPUs; `settings` are those of the training part."""
    kinds = {"single": "NO", "data_parallel": "NO"}
    kind = "FSDP" if preset.startswith("fsdp") else kinds.get(preset, "MULTI_GPU")
    training = dict(settings or {})
    if preset == "data_parallel":
        training["parallelism"] = "data_parallel"
    return RunSpec(
        preset=preset,
        accelerate=AccelerateSettings(
            distributed_type=kind, mixed_precision=precision,
            num_processes=1 if kind == "NO" else processes,
            fsdp_config=FsdpConfig() if kind == "FSDP" else None,
        ),
        training=TrainingSettings(**training),
        data=DataSpec(source="emoji"),
        global_batch=batch,
        num_processes=1 if kind == "NO" else processes,
        **{"device": "cuda", "gpu_ids": tuple(range(1 if preset == "single" else processes))}
        | fields,
    )  # fmt: skip


def observed(spec: RunSpec, **fields: Any) -> Observed:
    """What came, equal to the request unless said otherwise."""
    several = spec.num_processes > 1
    return Observed(
        **{
            "num_processes": spec.num_processes, "strategy": spec.strategy,
            "mixed_precision": spec.accelerate.mixed_precision, "backend": "nccl",
            "device": spec.device, "device_name": "NVIDIA H200", "num_parameters": PARAMETERS,
            "comm_hook": spec.training.comm_hook, "static_graph": spec.training.static_graph,
            "sync_batchnorm": spec.training.sync_batchnorm, "num_devices": spec.num_devices,
            "channels_last": spec.weights_channels_last, "compiled": spec.training.compile,
            "freeze": spec.training.freeze, "threads": spec.threads_per_device,
            "find_unused_parameters": spec.training.find_unused_parameters,
            "gradient_as_bucket_view": spec.training.gradient_as_bucket_view,
            "ema_decay": spec.training.ema_decay,
            "reduce_dtype": spec.training.reduce_dtype if spec.strategy == "fsdp" else None,
            "bucket_bytes": BUCKETS if several else (),
            "reduced_bytes_per_step": sum(BUCKETS) if several else None,
        } | fields
    )  # fmt: skip


def record(
    spec: RunSpec | None = None, *, step_ms: float = 50.0,
    run_id: str = "20260101-000000-calm-otter", epochs: int = 3,
    started: dict[str, Any] | None = None, epoch: dict[str, Any] | None = None,
    seen: Observed | None = None, **window: Any,
) -> RunRecord:  # fmt: skip
    """A finished run of three epochs of four windows; `window` sets their parts (`data_ms`)."""
    spec = spec or request()
    parts = {
        "data_ms": 0.0, "forward_ms": step_ms * 0.3, "backward_ms": step_ms * 0.6,
        "optimizer_ms": step_ms * 0.1,
    } | window  # fmt: skip
    least = {f"{name}_min": value for name, value in parts.items() if name.endswith("_ms")}
    windows = {"step_ms": step_ms, "step_ms_min": step_ms, **least, **parts}
    rate = spec.global_batch / step_ms * 1000
    lines: list[Any] = [
        RunStarted(
            **{
                "observed": seen or observed(spec), "num_train": 10_000, "num_val": 100,
                "num_classes": 10, "task": "multi-label", "data_fingerprint": "f",
                "data_title": "Emoji", "steps_per_epoch": 100, "learning_rate": 0.1,
                "num_workers": 4,
            } | (started or {})
        )
    ]  # fmt: skip
    for number in range(1, epochs + 1):
        lines += [
            WindowTimed(
                epoch=number, step=100 * number + 25 * place, num_steps=25, samples_per_s=rate,
                train_loss=1.0, learning_rate=0.1, **windows,
            )
            for place in range(4)
        ]  # fmt: skip
        lines.append(
            EpochTrained(
                epoch=number, epoch_time_s=100 * step_ms / 1000, epoch_time_s_min=0.0,
                num_samples=100 * spec.global_batch, samples_per_s=rate, num_optimizer_steps=100,
                train_loss=1.0, **(epoch or {}),
            )
        )  # fmt: skip
    made = RunRecord(id=run_id, name="calm-otter", path="runs/none", spec=spec, state="completed")
    fold_events(made, lines)
    return made


def baseline(spec: RunSpec, *, step_ms: float = 50.0) -> RunRecord:
    """One device at the settings of `spec`."""
    return record(
        baseline_of(spec), step_ms=step_ms, run_id="20260101-000000-mild-crane",
        seen=observed(baseline_of(spec)),
    )  # fmt: skip


def log(
    transport: str, kind: str, *, hosts: int = 1, path: str | None = None, **given: Any
) -> NcclLog:
    """Two ranks, one ring over `transport`; with two hosts the ring crosses them."""
    ranks = tuple(
        Rank(rank=n, host="abc"[n] if hosts > 1 else "a", pid=10 + n, device=n, bus_id=f"{n}b000")
        for n in range(2)
    )
    edges = tuple(
        Edge(communicator="0x1", channel=0, connection=0, src=n, dst=1 - n, transport=transport,
             kind=kind, nic=0 if transport == "NET" else None)
        for n in range(2)
    )  # fmt: skip
    ring = Pattern(
        name="ring", num_channels=1, bandwidth_inside_gb_per_s=12.0,
        bandwidth_between_gb_per_s=12.0, path_inside=path, path_between=None,
    )  # fmt: skip
    group = Communicator(
        id="0x1", num_ranks=2, num_nodes=2 if transport == "NET" else 1, ranks=ranks
    )
    return NcclLog(**{
        "version": "2.28.9", "hosts": tuple("abc"[:hosts]), "communicators": (group,),
        "edges": edges, "patterns": (ring,) if path else (), "num_lines": 100,
        "nics": (Nic(network="Socket", index=0, name="eth0", host="a"),),
    } | given)  # fmt: skip


def series(
    gb_per_s: float, *, transport: str | None = None, environment: dict[str, str] | None = None
) -> Series:
    """An fp32 all-reduce of two ranks that takes 20 µs and then goes at a bus bandwidth."""
    points = tuple(
        Point(num_bytes=size, median_us=us, p90_us=1.02 * us, repeats=20)
        for size in (MIB, 16 * MIB, 64 * MIB, 256 * MIB)
        for us in [20 + size / gb_per_s / 1e3]
    )
    return Series(
        operation="all_reduce", dtype="fp32", backend="nccl", num_ranks=2, points=points,
        environment=environment or {}, transport=transport,
    )  # fmt: skip


def sweep(*made: Series, device_name: str = "NVIDIA H200") -> Sweep:
    return Sweep(t=1.0, key="k", device_name=device_name, num_ranks=2, series=made)


def machine(*, num_cores: int = 32, name: str = "NVIDIA H200", num_gpus: int = 2) -> Machine:
    """A machine with GPUs of 140 GiB."""
    gpus = tuple(
        Gpu(
            index=n, name=name, uuid=f"GPU-{n}", memory_total_bytes=140 * 2**30, memory_used_bytes=0
        )
        for n in range(num_gpus)
    )
    return Machine(t=1.0, hardware=Hardware(gpus=gpus, num_cores=num_cores), num_cores=num_cores)


def description(*, host_us: float, device_us: float, batch: int = 64) -> Description:
    """One device, whose step takes as long as the longer of host and device."""
    step = max(host_us, device_us)
    profile = StepProfile(
        batch=batch, step_us=(step, step), forward_us=device_us * 0.3,
        backward_us=device_us * 0.6, optimizer_us=device_us * 0.1, host_us=host_us,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "t": 1.0, "key": "k", "model": "resnet50", "num_classes": 100, "image_size": 224,
        "precision": "bf16", "compile": False, "channels_last": True, "optimizer": "sgd",
        "device_name": "NVIDIA H200", "num_parameters": PARAMETERS,
        "parameter_bytes": 4 * PARAMETERS, "buffer_bytes": 0, "optimizer_state_bytes": 0,
        "profiles": (profile,),
    }  # fmt: skip
    return Description(**fields)


def experiment(spread: float = 0.01, **step_ms: float) -> Experiment:
    """Arms by name with their step; four blocks that spread by a hundredth."""
    spec = request()
    arms = tuple(
        Arm(
            name=name, num_processes=1 if name == "one" else 2,
            step_ms=tuple(ms * (1 + spread * offset) for offset in (-1, -0.5, 0.5, 1)),
        )
        for name, ms in step_ms.items()
    )  # fmt: skip
    return Experiment(t=1.0, key="k", spec=spec, device_name="NVIDIA H200", arms=arms)


def changed(made: Any, **fields: Any) -> Any:
    """A struct with other fields."""
    return msgspec.structs.replace(made, **fields)
