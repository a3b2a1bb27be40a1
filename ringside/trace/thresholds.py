"""Every threshold of the checks, with the reason for it; docs/trace.md shows this table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Threshold:
    """A limit; `unit` is "of the step" for ratios. `source`: a document, or what was measured."""

    value: float
    unit: str
    source: str


ACT = Threshold(
    0.10, "of the step", "TraceML's warning band; exposed communication below it is not worth a try"
)
URGENT = Threshold(0.20, "of the step", "TraceML's critical band; data wait of field reports")
LAUNCH = Threshold(
    0.30,
    "of the step",
    "the profiler itself slows launches (24 ms to 35-43 ms a step on an H200): up to 28 % of host "
    "wait were seen in steps that compute bounds",
)
HOST_LEAD = Threshold(
    0.30,
    "of the step",
    "hosts without a fault differed by up to 24 % over two launch-bound steps on 2 x H200, and "
    "once by 32 %, of 69 % for want of launches: so it has to be most of that as well",
)
MOSTLY_COMPUTE = Threshold(0.50, "of the step", "no other part can then be larger")
SMALL_REDUCES = Threshold(
    50, "all-reduces a step", "DDP sends 94.85 MB of ResNet-50 in 5; by hand it takes 161"
)
SMALL_REDUCE_BYTES = Threshold(
    2**20, "bytes on average", "DDP's smallest bucket by default is 1 MiB"
)
SMALL_REDUCE_US = Threshold(
    1000, "µs on average, where sizes are unknown", "404 a step took 147 µs each on 2 x V100"
)
HIDDEN = Threshold(
    0.05,
    "of the transfer",
    "0.4 to 1.3 % ran beside compute where kernels need the whole GPU, else 10 % or more over "
    "sockets, of the rank that sets the pace on 2 x H200",
)
EVERY_STEP = Threshold(0.9, "a step", "once a step, but for one that the window cuts")
MIN_EVENTS = Threshold(100, "pieces of work a rank", "a small network's step has more")

THRESHOLDS = {name: value for name, value in globals().items() if isinstance(value, Threshold)}
