"""Speed-up over the number of devices: what may stand on one line.

On one line stand runs of one preset and precision that were divided by the same baseline, in the
same sense. Runs with other data, another model or another kind of device than the reference are
left out, as are those without a speed-up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ringside.speedup import Scaling

if TYPE_CHECKING:
    from ringside.compare.comparison import ComparedRun


class ScalingRun(msgspec.Struct, frozen=True, kw_only=True):
    """One point: images/s over those of one device; the ideal is `num_devices`."""

    id: str
    num_devices: int
    speedup: float
    efficiency_ratio: float


class ScalingSeries(msgspec.Struct, frozen=True, kw_only=True):
    """One line, by number of devices; it begins at one device and 1.0."""

    preset: str
    mixed_precision: str
    scaling: Scaling
    baseline_id: str
    runs: tuple[ScalingRun, ...]


def scaling_series(runs: Iterable[ComparedRun]) -> tuple[ScalingSeries, ...]:
    """The lines of the runs, which are comparable in speed with the reference."""
    found: dict[tuple[str, str, Scaling, str], list[ScalingRun]] = {}
    for run in runs:
        gain = run.speedup
        if gain.value is None or gain.scaling is None or gain.baseline_id is None:
            continue
        if run.num_devices is None or gain.efficiency_ratio is None:
            continue
        key = (run.preset, run.mixed_precision, gain.scaling, gain.baseline_id)
        point = ScalingRun(
            id=run.id, num_devices=run.num_devices, speedup=gain.value,
            efficiency_ratio=gain.efficiency_ratio,
        )  # fmt: skip
        found.setdefault(key, []).append(point)
    return tuple(
        ScalingSeries(
            preset=preset, mixed_precision=precision, scaling=scaling, baseline_id=baseline_id,
            runs=tuple(sorted(points, key=lambda point: point.num_devices)),
        )
        for (preset, precision, scaling, baseline_id), points in found.items()
    )  # fmt: skip
