"""The step of one request, timed as it is: what its card shows and `ringside bench` compares."""

from __future__ import annotations

import msgspec

from ringside.measurements.experiment import Arm
from ringside.spec import RunSpec


class StepTiming(msgspec.Struct, frozen=True, kw_only=True):
    """The arm `many` of a request by itself, `many_synthetic` where its images are made up.

    `t`: seconds since 1970. `spec`: as it was asked for; what its images were decoded with stands
    in `arm`. `transport` and `num_cores` as in an Experiment.
    """

    format: int = 1
    t: float
    key: str
    spec: RunSpec
    device_name: str
    arm: Arm
    versions: dict[str, str] = {}
    transport: dict[str, str] = {}
    num_cores: int | None = None
