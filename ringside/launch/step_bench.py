"""Times a few steps of several requests, one after another, and of one device for each of them.

What `ringside estimate` predicts is measured here: the real step with its real images, in processes
of its own and without a profiler. It says how fast a preset is on this machine, not how well it
trains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import msgspec

from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.launch.probing import measure_step
from ringside.measurements import Arm
from ringside.measurements.attribution import Figure, figure_of, why_missing
from ringside.measurements.store import key_of_spec
from ringside.spec import RunSpec
from ringside.speedup import baseline_of

START_S = 12.0
"""About what a launch takes beside its steps; after the first one, its own pace counts."""


class TimedStep(msgspec.Struct, frozen=True, kw_only=True):
    """The step of a request, in milliseconds by the slowest rank; `spread_ms` of its blocks.

    `speedup`: images/s over one device at the same precision and images per device; None of one
    device, and where that could not be timed. `data_ms`: waiting for images in a step.
    """

    preset: str
    num_devices: int
    micro_batch: int
    global_batch: int
    mixed_precision: str
    step_ms: float
    spread_ms: float
    samples_per_s: float
    speedup: float | None = None
    efficiency_ratio: float | None = None
    data_ms: float | None = None
    memory_bytes: int | None = None


class StepBench:
    """The launches that the requests need, and what they have measured so far."""

    def __init__(
        self, specs: Iterable[RunSpec], *, seconds: float = 8.0, synthetic: bool = False
    ) -> None:
        self.specs = tuple(specs)
        self.seconds, self.synthetic = seconds, synthetic
        self.refused: dict[str, str] = {}
        self._arms: dict[str, Arm] = {}
        bases = {key_of_spec(base): base for spec in self.specs if (base := _alone(spec))}
        own = {key_of_spec(spec): spec for spec in self.specs}
        self.num_baselines = len(bases.keys() - own.keys())
        # One device first: it tells soonest whether anything runs here at all.
        self.launches: tuple[RunSpec, ...] = tuple((bases | own).values())

    @property
    def guess_s(self) -> float:
        """About how long all launches take."""
        return len(self.launches) * (START_S + self.seconds)

    def run(self, hardware: Hardware, tell: Callable[[int, RunSpec, float], None]) -> None:
        """Measure; `tell` gets the number of a launch, its request, and about the seconds left.

        A request that cannot be measured has a sentence in `refused`; the others go on.
        """
        begin, decoder = time.monotonic(), None
        for number, spec in enumerate(self.launches):
            pace = (time.monotonic() - begin) / number if number else START_S + self.seconds
            tell(number + 1, spec, pace * (len(self.launches) - number))
            try:
                arm = measure_step(
                    spec, hardware, seconds=self.seconds, decoder=decoder, synthetic=self.synthetic
                )
            except RingsideError as error:
                self.refused[label(spec)] = str(error)
                continue
            if figure_of(arm) is None:
                self.refused[label(spec)] = why_missing(arm)
            # Left to itself each launch would choose anew, and two might read differently.
            decoder = decoder or arm.decoder
            self._arms[key_of_spec(spec)] = arm

    def rows(self) -> list[TimedStep]:
        """The requests that were timed, most images per second first; then their baselines."""
        own = {key_of_spec(spec) for spec in self.specs}
        known = [pair for spec in self.launches if (pair := self._row(spec)) is not None]
        asked = [row for spec, row in known if key_of_spec(spec) in own]
        bases = [row for spec, row in known if key_of_spec(spec) not in own]
        return sorted(asked, key=lambda row: -row.samples_per_s) + bases

    def _row(self, spec: RunSpec) -> tuple[RunSpec, TimedStep] | None:
        figure, arm = self._figure(spec), self._arms.get(key_of_spec(spec))
        if figure is None or arm is None:
            return None
        rate = 1000 * spec.global_batch / figure.ms
        base = _alone(spec)
        alone = self._figure(base) if base is not None else None
        speedup = None
        if base is not None and alone is not None:
            speedup = rate * alone.ms / (1000 * base.global_batch)
        return spec, TimedStep(
            preset=spec.preset,
            num_devices=spec.num_devices,
            micro_batch=spec.micro_batch,
            global_batch=spec.global_batch,
            mixed_precision=spec.accelerate.mixed_precision,
            step_ms=figure.ms,
            spread_ms=figure.spread_ms,
            samples_per_s=rate,
            speedup=speedup,
            efficiency_ratio=speedup / spec.num_devices if speedup is not None else None,
            data_ms=None if self.synthetic else arm.data_ms,
            memory_bytes=arm.memory_bytes,
        )

    def _figure(self, spec: RunSpec) -> Figure | None:
        arm = self._arms.get(key_of_spec(spec))
        return None if arm is None else figure_of(arm)


def label(spec: RunSpec) -> str:
    """A preset with its precision where that is not fp32: baselines are all `single`."""
    precision = spec.accelerate.mixed_precision
    return spec.preset if precision in ("no", "") else f"{spec.preset} ({precision})"


def _alone(spec: RunSpec) -> RunSpec | None:
    """The baseline of a request of several devices."""
    return baseline_of(spec) if spec.num_devices > 1 else None
