"""The link is as fast as it can be; there is too much to send per step.

Seen when there is no NVLink (PCIe or host memory), the exposed transfer is 10 % of the step or
more, and the bandwidth is inside the healthy range of that way. Two H100 over PCIe went from 1.27
to 2.07 s per step, and were 1.23 times faster all the same: twice the images in each.
What to do: half the bytes (a 16-bit hook), more images per exchange (a larger batch per device, and
then accumulation), or GPUs with NVLink.
Sources: kohya-ss/sd-scripts#1434; the ranges stand in `ringside.machine.yardsticks`.
"""

from __future__ import annotations

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.figures import best_busbw, gradient_bytes, yardstick_for
from ringside.doctor.findings import Finding
from ringside.doctor.gains import fewer_bytes_of
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.machine.yardsticks import judge
from ringside.trace.findings import Cause

CODE = "LINK-017"
CAUSE: Cause = "link"
ORDER = 66


def check(case: Case) -> Finding | None:
    share, best, yardstick = transfer_share(case), best_busbw(case), yardstick_for(case)
    if share is None or share < WARNING or best is None or yardstick is None:
        return None
    if yardstick.route not in ("pcie", "shm") or judge(best[0], yardstick).endswith("below"):
        return None
    sent = gradient_bytes(case)
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        share_ratio=share,
        evidence=(
            seen("bus bandwidth", f"{best[0] / 1e9:.1f} GB/s", best[1]),
            seen("healthy from", f"{yardstick.low_bytes_per_s / 1e9:.0f} GB/s", yardstick.source),
            *((seen("gradients a step", f"{sent / 1e6:.1f} MB", "trace"),) if sent else ()),
        ),
        values={"busbw": best[0] / 1e9},
        remedy=fewer_bytes_of(case),
    )
