"""A step takes longer on several devices, and the run is faster all the same.

Seen when the step is at least 5 % longer than on one device, at equal images per device and
micro-step, and the images per second are more. Each step handles the images of all devices, so
seconds per step are no measure: 1.27 became 2.07 s/it on two H100 over PCIe, and that was 1.23
times as fast.
What to do: compare images per second, or epochs; see that the number of steps was divided by the
number of devices.
Sources: kohya-ss/sd-scripts#1434, TRELLIS#290, unsloth#2611.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.clocks import mean_ms, steady_windows, window_ms
from ringside.doctor.figures import efficiency_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "NONE-010"
CAUSE: Cause = "none"
ORDER = 110

LONGER = 1.05


def check(case: Case) -> Finding | None:
    known, own = efficiency_of(case), window_ms(case, "step")
    base = mean_ms(steady_windows(case.baseline), "step")
    if known.value is None or known.scaling != "weak" or own is None or not base:
        return None
    if own < LONGER * base or known.value <= 1:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "high",
        severity="note",
        evidence=(
            seen("step, one device", f"{base:.1f} ms", known.baseline_id or "baseline"),
            seen("step, all devices", f"{own:.1f} ms", "events.jsonl"),
            seen("images/s", say("seen.times_as_many", ratio=known.value), "events.jsonl"),
        ),
        values={"speedup": known.value, "longer": own / base},
    )
