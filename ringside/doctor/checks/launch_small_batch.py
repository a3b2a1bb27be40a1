"""The batch of a device is so small that the host cannot keep up.

Seen when one device alone, without any exchange, needs 90 % of its step or more for the host to
launch it, and the device itself is done in less than 90 %. More devices then make nothing faster,
and the exchange is only the next thing to wait for. A ResNet-50 of 64 images took 21.9 ms on an
H200, 18.8 compiled and 11.5 with CUDA graphs (`compile_mode` reduce-overhead): the same arithmetic.
What to do: more images per device, or a compiled model with `compile_mode=reduce-overhead`.
Sources: pytorch/examples#1298 and #1085, Lightning#1005, efficient_densenet#9; the H200 figures
were measured for Ringside.
"""

from __future__ import annotations

from statistics import median

from ringside.doctor.applying import compiled
from ringside.doctor.case import Case
from ringside.doctor.figures import spec_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.measurements import StepProfile
from ringside.trace.findings import Cause

CODE = "LAUNCH-011"
CAUSE: Cause = "launch"
ORDER = 92

NEARLY_ALL = 0.9


def check(case: Case) -> Finding | None:
    spec, profile = spec_of(case), _profile(case)
    if profile is None or profile.host_us is None or not profile.step_us:
        return None
    step_us = median(profile.step_us)
    device_us = profile.forward_us + profile.backward_us + profile.optimizer_us
    if profile.host_us < NEARLY_ALL * step_us or device_us >= NEARLY_ALL * step_us:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "high",
        share_ratio=1 - device_us / step_us,
        evidence=(
            seen("step of one device", f"{step_us / 1000:.1f} ms", "description"),
            seen("to launch it", f"{profile.host_us / 1000:.1f} ms", "description"),
            seen("the device works", f"{device_us / 1000:.1f} ms", "description"),
        ),
        values={"batch": profile.batch},
        remedy=compiled(spec, replays=True) if spec is not None else None,
    )


def _profile(case: Case) -> StepProfile | None:
    """The profile at the batch of the run, else the largest."""
    if case.description is None or case.description.device_name == "cpu":
        return None
    spec = spec_of(case)
    profiles = case.description.profiles
    own = [p for p in profiles if spec is not None and p.batch == spec.micro_batch]
    return next(iter(own), profiles[-1] if profiles else None)
