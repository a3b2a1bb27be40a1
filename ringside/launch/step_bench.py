"""Times a few steps of several requests, one after another, and of one device for each of them.

What `ringside estimate` predicts is measured here: the real step with its real images, in processes
of its own and without a profiler. It says how fast a preset is on this machine, not how well it
trains.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

import msgspec

from ringside.errors import RingsideError
from ringside.hardware import Hardware
from ringside.launch.probing import measure_step
from ringside.measurements import StepTiming
from ringside.measurements.attribution import figure_of, why_missing
from ringside.measurements.store import key_of_spec
from ringside.spec import RunSpec
from ringside.speedup import baseline_of
from ringside.words import say
from ringside.words.retelling import retold

START_S = 12.0
"""About what a launch takes beside its steps; after the first one, its own pace counts."""

NEAR = 0.05
"""Presets whose images/s differ by less, or by less than their blocks spread, are as fast."""

SYNTHETIC = "synthetic"
"""The source whose images are made up; here they lie on the device, so nothing waits for any."""


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

    def __init__(self, specs: Iterable[RunSpec], *, seconds: float = 8.0) -> None:
        self.specs = tuple(specs)
        self.seconds = seconds
        self.refused: dict[str, str] = {}
        self._found: dict[str, StepTiming] = {}
        bases = {key_of_spec(base): base for spec in self.specs if (base := alone(spec))}
        own = {key_of_spec(spec): spec for spec in self.specs}
        self.num_baselines = len(bases.keys() - own.keys())
        # One device first: it tells soonest whether anything runs here at all.
        self.launches: tuple[RunSpec, ...] = tuple((bases | own).values())

    @property
    def guess_s(self) -> float:
        """About how long all launches take."""
        return len(self.launches) * (START_S + self.seconds)

    def run(
        self, hardware: Hardware, tell: Callable[[int, RunSpec, float], None],
        keep: Callable[[StepTiming], object] = lambda _: None,
    ) -> None:  # fmt: skip
        """Measure; `tell` gets the number of a launch, its request, and about the seconds left.

        A request that cannot be measured has a sentence in `refused`; the others go on. `keep` gets
        each timing at once, so that whoever cuts it off loses one launch.
        """
        begin, decoder = time.monotonic(), None
        for number, spec in enumerate(self.launches):
            pace = (time.monotonic() - begin) / number if number else START_S + self.seconds
            tell(number + 1, spec, pace * (len(self.launches) - number))
            try:
                found = measure_step(
                    spec, hardware, seconds=self.seconds,
                    decoder=decoder if spec.training.decoder == "auto" else None,
                    synthetic=spec.data.source == SYNTHETIC,
                )  # fmt: skip
            except RingsideError as error:
                # What a rank wrote before it ended is English, as all files are.
                self.refused[self._name(spec)] = retold(str(error))
                continue
            # Left to itself each launch would choose anew, and two might read differently.
            decoder = decoder or found.arm.decoder
            if figure_of(found.arm) is None:
                self.refused[self._name(spec)] = retold(why_missing(found.arm))
                continue
            self._found[key_of_spec(spec)] = found
            keep(found)

    def _name(self, spec: RunSpec) -> str:
        """The preset that was asked for; of a baseline with what tells it from others."""
        is_asked = any(key_of_spec(spec) == key_of_spec(one) for one in self.specs)
        if is_asked:
            return spec.preset
        return say("bench.baseline", name=label(spec), n=spec.micro_batch)

    def asked(self) -> list[TimedStep]:
        """The requests that were timed, most images per second first."""
        rows = (self._row(spec) for spec in {key_of_spec(one): one for one in self.specs}.values())
        return sorted((row for row in rows if row is not None), key=lambda row: -row.samples_per_s)

    def rows(self) -> list[TimedStep]:
        """What was asked for and timed, and then its baselines."""
        own = {key_of_spec(spec) for spec in self.specs}
        bases = [self._row(spec) for spec in self.launches if key_of_spec(spec) not in own]
        return self.asked() + [row for row in bases if row is not None]

    def _row(self, spec: RunSpec) -> TimedStep | None:
        found, base = self._found.get(key_of_spec(spec)), alone(spec)
        if found is None:
            return None
        return timed_step(found, self._found.get(key_of_spec(base)) if base is not None else None)


def timed_step(found: StepTiming, base: StepTiming | None) -> TimedStep | None:
    """A timing in figures, `base` that of one device; None where it has too few blocks."""
    spec, figure = found.spec, figure_of(found.arm)
    if figure is None:
        return None
    rate = 1000 * spec.global_batch / figure.ms
    one = figure_of(base.arm) if base is not None else None
    speedup = None
    if base is not None and one is not None:
        speedup = rate * one.ms / (1000 * base.spec.global_batch)
    return TimedStep(
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
        data_ms=None if spec.data.source == SYNTHETIC else found.arm.data_ms,
        memory_bytes=found.arm.memory_bytes,
    )


def alone(spec: RunSpec) -> RunSpec | None:
    """The baseline of a request of several devices."""
    return baseline_of(spec) if spec.num_devices > 1 else None


def label(spec: RunSpec) -> str:
    """A preset with its precision where that is not fp32: baselines are all `single`."""
    precision = spec.accelerate.mixed_precision
    return spec.preset if precision in ("no", "") else f"{spec.preset} ({precision})"


def lead(first: TimedStep, second: TimedStep) -> tuple[float, float]:
    """By how much the first is faster, and how far both spread; shares of their images/s."""
    noise = math.hypot(*(row.spread_ms / row.step_ms for row in (first, second)))
    return first.samples_per_s / second.samples_per_s - 1, noise


def is_near(first: TimedStep, second: TimedStep) -> bool:
    """Whether nobody can tell which of the two is faster."""
    ahead, noise = lead(first, second)
    return ahead < max(NEAR, noise)
