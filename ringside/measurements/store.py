"""The one place of measurements: `measurements/` beside the runs.

    store = Store(runs_root())
    store.save(sweep)
    store.sweep(hardware, num_ranks=2)

A file holds one visit, `KIND-KEY-MILLISECONDS.json`, and is overwritten by more of the same visit
only; the latest that fits is taken. A file that is torn, foreign or from a newer Ringside is as
good as none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from ringside.errors import RunDirError
from ringside.hardware import Hardware
from ringside.measurements.description import Description
from ringside.measurements.experiment import Experiment
from ringside.measurements.fitting import fits
from ringside.measurements.keys import (
    key_of_machine,
    key_of_model,
    key_of_spec,
    transport_variables,
)
from ringside.measurements.sweep import Sweep
from ringside.measurements.timing import StepTiming
from ringside.rundir import iter_files, write_atomic
from ringside.spec import FORMAT, RunSpec
from ringside.words import say

__all__ = ["Store", "key_of_machine", "key_of_model", "key_of_spec", "prefix_of"]

FOLDER = "measurements"

Measurement = TypeVar("Measurement", Sweep, Experiment, StepTiming, Description)
OfStep = TypeVar("OfStep", Experiment, StepTiming)


class Store:
    """Reads and writes the measurements beside the runs of `runs_root`."""

    def __init__(self, runs_root: Path) -> None:
        self.folder = runs_root / FOLDER

    def save(self, measurement: Sweep | Experiment | StepTiming | Description) -> Path:
        """Keep one measurement under its own key; RunDirError where that cannot be written."""
        prefix = prefix_of(type(measurement))
        name = f"{prefix}{measurement.key}-{round(1000 * measurement.t)}.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunDirError(
                say("runs_folder.unwritable", path=self.folder, why=error.strerror)
            ) from None
        data = msgspec.json.format(msgspec.json.encode(measurement), indent=1)
        write_atomic(self.folder / name, data + b"\n")
        return self.folder / name

    def sweep(
        self, hardware: Hardware, num_ranks: int, environment: Mapping[str, str] | None = None,
        *, inherited: Mapping[str, str] | None = None,
    ) -> Sweep | None:  # fmt: skip
        """The latest of these devices and this transport.

        `environment` is what a preset adds to the inherited variables, such as
        {"NCCL_P2P_DISABLE": "1"}; those are os.environ, or what a run's ranks really had.
        """
        key = key_of_machine(hardware, num_ranks, _of_ranks(environment or {}, inherited))
        return _latest(self._with_key(Sweep, key))

    def experiment(
        self, spec: RunSpec, device_name: str | None = None, *,
        inherited: Mapping[str, str] | None = None, hardware: Hardware | None = None,
    ) -> Experiment | None:  # fmt: skip
        """The latest of a request with the same step and transport, `inherited` as for `sweep`.

        On `device_name` where it is given, and with the torch (on a CPU the cores, too) of
        `hardware`, which is this machine where it is left out.
        """
        return self._of_step(Experiment, spec, device_name, inherited, hardware)

    def timing(
        self, spec: RunSpec, device_name: str | None = None, *,
        inherited: Mapping[str, str] | None = None, hardware: Hardware | None = None,
    ) -> StepTiming | None:  # fmt: skip
        """The latest of a request's step alone, by the rules of `experiment`."""
        return self._of_step(StepTiming, spec, device_name, inherited, hardware)

    def description(
        self, spec: RunSpec, device_name: str | None = None, *, hardware: Hardware | None = None
    ) -> Description | None:
        """The latest of this request's model on one device, whatever the batch.

        One that was measured at the request's own batch is taken before any other. `hardware` as
        for `experiment`.
        """
        found = [
            one
            for one in self._with_key(Description, key_of_model(spec))
            if device_name in (None, one.device_name) and fits(one, spec.device, hardware)
        ]
        own = (one for one in found if spec.micro_batch in (p.batch for p in one.profiles))
        return _latest(own) or _latest(found)

    def _of_step(
        self, kind: type[OfStep], spec: RunSpec, device_name: str | None,
        inherited: Mapping[str, str] | None, hardware: Hardware | None,
    ) -> OfStep | None:  # fmt: skip
        transport = transport_variables(_of_ranks(spec.environment, inherited))
        return _latest(
            one
            for one in self._with_key(kind, key_of_spec(spec))
            if device_name in (None, one.device_name)
            and one.transport == transport
            and fits(one, spec.device, hardware)
        )

    def _with_key(self, kind: type[Measurement], key: str) -> Iterator[Measurement]:
        for path in iter_files(self.folder, f"{prefix_of(kind)}{key}-*.json"):
            try:
                found = msgspec.json.decode(path.read_bytes(), type=kind)
            except (OSError, msgspec.DecodeError, ValueError):
                continue
            if found.key == key and found.format <= FORMAT:
                yield found


def prefix_of(kind: type[Sweep | Experiment | StepTiming | Description]) -> str:
    """What the names of its files begin with."""
    return f"{kind.__name__.lower()}-"


def _of_ranks(added: Mapping[str, str], inherited: Mapping[str, str] | None) -> dict[str, str]:
    """What a preset adds to the variables that were there."""
    return dict(os.environ if inherited is None else inherited) | dict(added)


def _latest(found: Iterator[Measurement] | list[Measurement]) -> Measurement | None:
    return max(found, key=lambda one: one.t, default=None)
