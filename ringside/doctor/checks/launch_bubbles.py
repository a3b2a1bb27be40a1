"""The GPU runs dry between large kernels: the host is held up, not slow.

Seen when the GPU is idle for want of launches for 10 % of the step or more, although its kernels
take 100 µs and more each, which a host launches ahead of with ease, and although the host does not
wait for the GPU. In traces of others the main thread waited for the interpreter's lock (GIL), which
the thread that pins memory held: bubbles of 50 ms in a pass of 335, 30 to 40 % slower on 8 GPUs.
The trace cannot show who held the lock.
What to do: `py-spy dump --native --pid PID` a few times during a step shows who holds it; a run
without pinned memory, or with fewer Python threads, decides it.
Sources: pytorch#77139, #180500 and #89753.
"""

from __future__ import annotations

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import file_of, finding_of, seen
from ringside.doctor.shares import both_steps, share_of
from ringside.trace.findings import Cause
from ringside.words import percent, say

CODE = "LAUNCH-010"
CAUSE: Cause = "launch"
ORDER = 91

LARGE_KERNEL_US = 100
FEW = 1.5  # synchronisations a step, such as one read at its end


def check(case: Case) -> Finding | None:
    if case.facts is None:
        return None
    pace = case.facts.pace
    share = share_of(case, pace.breakdown.ratio("host_wait"), part="host_wait")
    num = pace.totals.num_events
    if share < WARNING or pace.is_cpu_estimate or not num:
        return None
    kernel_us = (pace.totals.compute_us + pace.totals.comm_us) / num
    if kernel_us < LARGE_KERNEL_US or pace.host.num_synchronisations > FEW:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "low",
        share_ratio=share,
        evidence=(
            seen(
                "idle, for want of launches",
                say("seen.of_step", share=percent(share)),
                file_of(pace),
            ),
            *both_steps(case),
            seen(
                "a kernel takes", say("seen.in_mean", amount=f"{kernel_us:.0f} µs"), file_of(pace)
            ),
        ),
        values={"us": kernel_us, "rank": pace.rank},
    )
