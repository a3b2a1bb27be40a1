"""In what runs differ: what was asked for, what really ran, and the machine; equal lines left out.

A line holds one value for each run, as plain data. `observed` is None where nothing reads the value
back, and `requested` where nobody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ringside.hardware import Hardware
from ringside.run import RunRecord
from ringside.rundir import RunDir
from ringside.spec import RunSpec

Group = Literal["preset", "data", "training", "environment", "hardware", "versions"]
GROUPS: tuple[Group, ...] = (
    "preset", "data", "training", "environment", "hardware", "versions",
)  # fmt: skip
Facts = dict[tuple[Group, str], Any]

OBSERVED_GROUP: dict[str, Group] = {
    "device": "hardware", "device_name": "hardware", "threads": "hardware", "num_devices": "preset",
    "num_processes": "preset", "strategy": "preset", "mixed_precision": "preset",
    "backend": "preset", "num_parameters": "training",
}  # fmt: skip
"""All other observed values belong to training."""

OBSERVED_ELSEWHERE = {"environment", "versions"}
OF_EACH_RUN = {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}
"""Variables that point into the run's own folder, so that no two runs agree on them."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing in which the runs differ: a value for each, in their order; None is missing."""

    group: Group
    name: str
    requested: tuple[Any, ...] | None = None
    observed: tuple[Any, ...] | None = None


def configuration(
    records: Sequence[RunRecord], *, everything: bool = False
) -> tuple[Difference, ...]:
    """All differences, group by group; empty for equal runs and for a single one.

    `everything`: lines in which the runs agree, too.
    """
    asked = [dict(_requested(record)) for record in records]
    seen = [dict(_observed(record)) for record in records]
    keys = dict.fromkeys(key for facts in (*asked, *seen) for key in facts)
    ran = [record.observed is not None for record in records]
    lines = (_line(key, asked, seen, ran, everything=everything) for key in keys)
    found = [line for line in lines if line is not None]
    return tuple(sorted(found, key=lambda line: GROUPS.index(line.group)))


def _line(
    key: tuple[Group, str], asked: list[Facts], seen: list[Facts], ran: list[bool], *,
    everything: bool,
) -> Difference | None:  # fmt: skip
    requested, observed = _values(key, asked), _values(key, seen)
    if not (everything or _differs(requested) or _differs(_met(observed, ran))):
        return None
    group, name = key
    return Difference(group=group, name=name, requested=requested, observed=observed)


def _values(key: tuple[Group, str], facts: list[Facts]) -> tuple[Any, ...] | None:
    if not any(key in one for one in facts):
        return None
    return tuple(one.get(key) for one in facts)


def _met(values: tuple[Any, ...] | None, ran: list[bool]) -> tuple[Any, ...] | None:
    """Without the gaps of runs that ended before anything was read back of them."""
    if values is None:
        return None
    pairs = zip(values, ran, strict=True)
    return tuple(value for value, has_run in pairs if has_run or value is not None)


def _differs(values: tuple[Any, ...] | None) -> bool:
    return values is not None and any(value != values[0] for value in values[1:])


def _requested(record: RunRecord) -> Iterator[tuple[tuple[Group, str], Any]]:
    spec = record.spec
    if spec is None:
        return
    yield from _asked_of_preset(spec)
    for name, value in _plain(spec.data).items():
        yield ("data", name), value
    own = ("model", "epochs", "seed", "global_batch", "keeps_global_batch", "weights",
           "resume_from", "profile_steps", "micro_batch")  # fmt: skip
    for name in own:
        yield ("training", name), getattr(spec, name)
    yield ("training", "peak_learning_rate"), spec.learning_rate
    for name, value in _plain(spec.training).items():
        yield ("training", name), value
    for name, value in spec.environment.items():
        yield ("environment", name), value
    yield ("hardware", "device"), spec.device
    yield ("hardware", "gpu_ids"), list(spec.gpu_ids)
    yield ("hardware", "threads"), spec.threads_per_device


def _asked_of_preset(spec: RunSpec) -> Iterator[tuple[tuple[Group, str], Any]]:
    for name in ("preset", "strategy", "num_processes", "num_devices"):
        yield ("preset", name), getattr(spec, name)
    yield ("preset", "mixed_precision"), spec.accelerate.mixed_precision
    yield ("preset", "distributed_type"), spec.accelerate.distributed_type
    for name, value in _plain(spec.accelerate.fsdp_config).items():
        yield ("preset", name), value


def _observed(record: RunRecord) -> Iterator[tuple[tuple[Group, str], Any]]:
    if record.observed is not None:
        for name, value in _plain(record.observed).items():
            if name not in OBSERVED_ELSEWHERE:
                yield (OBSERVED_GROUP.get(name, "training"), name), value
        for name, value in record.observed.environment.items():
            if name not in OF_EACH_RUN:
                yield ("environment", name), value
        for name, value in record.observed.versions.items():
            yield ("versions", name), value
    if record.started is not None:
        for name in ("num_train", "num_val", "num_classes", "task", "data_fingerprint", "decoder"):
            yield ("data", name), getattr(record.started, name)
        yield ("data", "num_workers"), record.started.num_workers
    yield from _machine(record)


def _machine(record: RunRecord) -> Iterator[tuple[tuple[Group, str], Any]]:
    run = RunDir(Path(record.path))
    hardware = run.read(run.hardware, Hardware)
    if hardware is None:
        return
    yield ("hardware", "gpus"), [gpu.name for gpu in hardware.gpus]
    yield ("hardware", "num_cores"), hardware.num_cores
    yield ("hardware", "memory_bytes"), hardware.memory_bytes
    yield ("hardware", "system"), hardware.system
    yield ("versions", "driver"), hardware.driver
    yield ("versions", "python"), hardware.python


def _plain(value: Any) -> dict[str, Any]:
    """A struct as plain data; empty for None."""
    found: dict[str, Any] = {} if value is None else msgspec.to_builtins(value)
    return found
