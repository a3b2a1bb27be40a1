"""What processes cost each other without exchanging anything: cores, memory and power are shared.

One device alone does not show it, and where the host sets the pace it can be a fifth of the step.
"""

from __future__ import annotations

from statistics import median

import msgspec

from ringside.measurements.derived import at_batch
from ringside.measurements.description import Crowded, Description
from ringside.spec import RunSpec


def crowd_of(spec: RunSpec) -> RunSpec:
    """Plain DDP of the request's step, on as many processes; it is timed without reduction."""
    replace, one = msgspec.structs.replace, at_batch(spec, spec.micro_batch)
    count = spec.num_processes
    accelerate = replace(one.accelerate, distributed_type="MULTI_GPU", num_processes=count)
    return replace(
        one,
        preset="ddp",
        accelerate=accelerate,
        num_processes=count,
        gpu_ids=spec.gpu_ids[:count],
        global_batch=count * spec.micro_batch,
    )


def with_crowd(description: Description, crowded: Crowded, t: float) -> Description:
    """The description with one more crowd in it, as of time `t`."""
    others = [
        one
        for one in description.crowded
        if (one.num_processes, one.batch) != (crowded.num_processes, crowded.batch)
    ]
    return msgspec.structs.replace(description, t=t, crowded=(*others, crowded))


def crowding_ratio(description: Description, num_processes: int, batch: int) -> float | None:
    """How many times longer a step takes among so many processes; None where it was not measured.

    The nearest measured batch that one process was timed at stands for others. Never below 1.
    """
    alone = {profile.batch: median(profile.step_us) for profile in description.profiles}
    known = [
        one
        for one in description.crowded
        if one.num_processes == num_processes and one.batch in alone and one.step_us
    ]
    if num_processes == 1 or not known:
        return 1.0 if num_processes == 1 else None
    near = min(known, key=lambda one: abs(one.batch - batch))
    return max(1.0, median(near.step_us) / alone[near.batch])
