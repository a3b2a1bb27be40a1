"""What a preflight looks at: the request, resolved as far as that goes, and the machine now."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ringside.data import DataReport, parse_data
from ringside.errors import OtherTaskError, RingsideError, UnevenBatchError
from ringside.hardware import Hardware
from ringside.machine import GpuState
from ringside.preflight.items import Item
from ringside.request import RunRequest, resolve
from ringside.spec import DataSpec, RunSpec

TRIED: dict[str, tuple[str, ...]] = {
    "overrides": ("model",), "model": ("overrides",), "epochs": (), "processes": ("overrides",),
    "gpus": (), "batch": ("processes", "gpus", "keep_global_batch", "overrides"), "seed": (),
    "weights": ("model",), "profile": (), "time_limit_s": (), "retries": (),
}  # fmt: skip
"""Fields that can be wrong by themselves, each with those that it is right or wrong with."""

ENOUGH = "synthetic:10000000"
"""Data that no batch is too large for: whether one is, is asked of the whole request."""


@dataclass(frozen=True)
class Case:
    """What is known before a start; what could not be read is empty or None.

    `spec` is None where the request cannot be resolved, and `faults` say why. `report` is the last
    check of the data. `gpus` is the state of the GPUs now, `environment` what ranks inherit.
    """

    request: RunRequest
    hardware: Hardware
    root: Path
    spec: RunSpec | None = None
    data: DataSpec | None = None
    faults: tuple[Item, ...] = ()
    report: DataReport | None = None
    gpus: tuple[GpuState, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def look(
    request: RunRequest, hardware: Hardware, root: Path, *,
    spec: RunSpec | None = None, reports: Callable[[DataSpec], DataReport | None] | None = None,
    gpus: tuple[GpuState, ...] = (), environment: Mapping[str, str] | None = None,
) -> Case:  # fmt: skip
    """The case of a request; `spec` where it was resolved already, with files left out.

    `reports` gives the last check of a data set, where there was one.
    """
    faults: tuple[Item, ...] = ()
    if spec is None:
        try:
            spec = resolve(request, hardware)
        except RingsideError as error:
            faults = tuple(_faults(request, hardware, error))
    data = spec.data if spec else _data(request)
    report = reports(data) if reports and data else None
    return Case(
        request=request, hardware=hardware, root=root, spec=spec,
        data=data, faults=faults, report=report, gpus=gpus,
        environment=os.environ if environment is None else environment,
    )  # fmt: skip


def _data(request: RunRequest) -> DataSpec | None:
    try:
        return _parse(request)
    except RingsideError:
        return None  # one of the faults


def _parse(request: RunRequest) -> DataSpec:
    return parse_data(request.data, image_size=request.image_size, separator=request.separator)


def _faults(request: RunRequest, hardware: Hardware, error: RingsideError) -> Iterator[Item]:
    """Every sentence that refuses the request, so that a person mends all at once.

    Resolving ends at the first fault. So each field is tried by itself too, on the same preset.
    """
    told: dict[str, str | None] = {}
    for name in ("preset", "data", *TRIED):
        faulty = set(told.values())
        if "preset" in faulty:
            break  # nothing can be said of any field without its preset
        try:
            _try(name, request, hardware, faulty)
        except OtherTaskError:
            pass  # of the task of `ENOUGH`, which is not the one asked for
        except RingsideError as found:
            # The whole request knows how many images there are, and so which batches can be.
            is_same = isinstance(found, UnevenBatchError) and isinstance(error, UnevenBatchError)
            told.setdefault(str(error if is_same else found), name)
    told.setdefault(str(error), None)
    for sentence, field_name in told.items():
        yield Item(code="request", level="error", sentence=sentence, field=field_name)


def _try(name: str, request: RunRequest, hardware: Hardware, faulty: Set[str | None]) -> None:
    """Resolve one field, with those that belong to it and are not at fault themselves."""
    if name == "data":
        _parse(request)
        return
    plain = RunRequest(preset=request.preset, data=ENOUGH)
    companions = (one for one in TRIED.get(name, ()) if one not in faulty)
    given = {one: getattr(request, one) for one in (name, *companions)}
    if name == "preset" or given[name] != getattr(plain, name):
        resolve(msgspec.structs.replace(plain, **given), hardware)


@functools.lru_cache(maxsize=16)
def class_counts(spec: DataSpec) -> tuple[tuple[str, int, int], ...]:
    """(class, training images, validation images) of built-in data, which do not change."""
    from ringside.data import open_data

    data = open_data(spec)
    train, val = data.train.targets.sum(axis=0), data.val.targets.sum(axis=0)
    return tuple(
        (name, int(t), int(v)) for name, t, v in zip(data.classes, train, val, strict=True)
    )
