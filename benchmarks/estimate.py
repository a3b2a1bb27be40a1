"""Predictions of steps and memory against fresh runs on this machine.

    python benchmarks/estimate.py --out /tmp/estimate --batches 64 256 --precision bf16 \\
        --transport nvlink shm socket [--plan]

For each batch a description and what processes cost each other without exchanging anything; for
each transport a sweep, and at each batch two launches: `steps`, every preset in turns, five
repeats, no profiler, images on the device already; and `again`, ddp alone. Each part lies in a file
of its own in --out and is not measured again, so that a visit may be cut short and go on; --only
picks parts by the beginning of their names (`description-64`, `steps-shm`), and --plan only says
what is to be measured and about how long it takes. Without --transport the machine is taken as it
is.

What is compared, always with the medians of `steps`:

one device  predicted from one device's step, the crowd and the sweep, all of other launches
replay      ddp, predicted by a replay that was calibrated by the ddp of `again`: another launch of
            the same set-up, so that chance and drift between launches count as error
one knob    any other preset, predicted by the same replay

With --runs the calibrating launch is a whole `ringside run` of ddp instead, as `--like` takes one.

A prediction counts where the spread (half the range of the repeats around their median) of both
sides is below half the bar; `estimate_report.py` has the bars. Exit code 1 when one is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from estimate_parts import PRESETS, REFERENCE, TRANSPORTS, Parts, say
from estimate_report import REPEATS, Row, Timed, print_report, spread_ratio

from ringside.estimate import Calibration, Inputs, estimate
from ringside.estimate.calibration import calibrate_step
from ringside.estimate.steps import NotEstimated
from ringside.hardware import Hardware, read_hardware
from ringside.measurements import Crowded, Description, Sweep
from ringside.measurements.crowd import with_crowd
from ringside.spec import RunSpec


def main(argv: list[str] | None = None) -> int:
    """Measure what is not there yet, then print the tables."""
    options = parse_arguments(argv)
    bench = Benchmark(options, read_hardware())
    if options.plan:
        bench.parts.print_plan()
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    bench.parts.measure()
    return 0 if print_report(bench.head(), bench) else 1


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Flags of this benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder of the measurements")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--precision", default="bf16", choices=["no", "fp16", "bf16"])
    parser.add_argument("--optimizer", default="sgd", choices=["sgd", "adamw"])
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256], help="per device")
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--presets", nargs="+", default=list(PRESETS))
    parser.add_argument("--transport", nargs="+", default=["default"], choices=list(TRANSPORTS))
    parser.add_argument("--seconds", type=float, default=1.0, help="of each repeat")
    parser.add_argument("--probe-seconds", type=float, default=2.0, help="of each description")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for a launch")
    parser.add_argument("--only", nargs="*", default=None, help="beginnings of parts' names")
    parser.add_argument("--runs", action="store_true", help="calibrate by whole runs")
    parser.add_argument("--plan", action="store_true", help="print the parts and measure nothing")
    return parser.parse_args(argv)


class Benchmark:
    """What was measured in one visit, and what is predicted from it."""

    def __init__(self, options: argparse.Namespace, hardware: Hardware) -> None:
        self.options, self.hardware = options, hardware
        self.parts = Parts(options, hardware)

    def head(self) -> str:
        """The machine, the versions and the job."""
        options, hardware = self.options, self.hardware
        names = ", ".join(sorted({gpu.name for gpu in hardware.gpus})) or "CPU"
        return (
            f"{self.parts.processes} x {names}, torch {hardware.versions.get('torch')}, "
            f"{options.model}, {options.image_size} px, {options.precision}, "
            f"{options.optimizer}, {REPEATS} repeats of {options.seconds} s in turns"
        )

    def inputs(self, transport: str, spec: RunSpec) -> Inputs:
        """What a prediction may know: description, crowd and sweep, of launches of their own."""
        batch = spec.micro_batch
        description = self.parts.read(f"description-{batch}", Description)
        crowded = self.parts.read(f"crowd-{batch}", Crowded)
        if description and crowded:
            description = with_crowd(description, crowded, description.t)
        return Inputs(description=description, sweep=self.parts.read(f"sweep-{transport}", Sweep))

    def cases(self) -> Iterator[tuple[str, Timed]]:
        """(transport, set-up) of all that was timed."""
        for transport in self.options.transport:
            for batch in self.options.batches:
                for timed in self.parts.read(f"steps-{transport}-{batch}", list[Timed]) or []:
                    yield transport, timed

    def rows(self) -> Iterator[Row]:
        """Every prediction that has a measurement."""
        for transport, timed in self.cases():
            if timed.step_ms:
                yield from self._rows(transport, timed)

    def _rows(self, transport: str, timed: Timed) -> Iterator[Row]:
        spec, inputs = timed.spec, self.inputs(transport, timed.spec)
        yield from self._row(transport, timed, "one device", inputs)
        other = self._calibrating(transport, spec.micro_batch)
        calibration = self._calibration(transport, other) if other else None
        if other and calibration:
            kind = "replay" if spec.preset == REFERENCE else "one knob"
            calibrated = replace(inputs, calibration=calibration)
            yield from self._row(transport, timed, kind, calibrated, other)

    def _row(
        self, transport: str, timed: Timed, kind: str, inputs: Inputs, other: Timed | None = None
    ) -> Iterator[Row]:
        found = estimate(timed.spec, inputs)
        if found.step_ms is None:
            say(f"{transport} {timed.spec.preset}: {' '.join(found.missing)}")
            return
        spreads = [spread_ratio(one.step_ms) for one in (timed, other) if one]
        yield Row(
            transport=transport,
            batch=timed.spec.micro_batch,
            preset=timed.spec.preset,
            kind=kind,
            measured_ms=statistics.median(timed.step_ms),
            spread_ratio=max(spreads),
            predicted_ms=found.step_ms,
            exposed_ratio=found.exposed_ratio or 0.0,
            gain_ratio=found.gain_ratio or 0.0,
        )

    def _calibrating(self, transport: str, batch: int) -> Timed | None:
        """The ddp of another launch; None where it was not timed."""
        if self.options.runs:
            return self.parts.read(f"run-{transport}-{batch}", Timed)
        found = self.parts.read(f"again-{transport}-{batch}", list[Timed]) or []
        return next((timed for timed in found if timed.step_ms), None)

    def _calibration(self, transport: str, timed: Timed) -> Calibration | None:
        inputs = self.inputs(transport, timed.spec)
        step_us = 1000 * statistics.median(timed.step_ms)
        try:
            return calibrate_step(
                timed.spec, step_us, inputs.description, inputs.sweep, f"{transport} {REFERENCE}"
            )
        except NotEstimated as reason:
            say(str(reason))
            return None


if __name__ == "__main__":
    sys.exit(main())
