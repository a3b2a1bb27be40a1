"""The step lost more time than any exchange over this link can take.

Seen when leaving the exchange out saves 10 % of the step or more (without that experiment: when the
step is 10 % longer than on one device, at equal images per device), and the link would have to be
four times slower than it was measured, or than the low end of its healthy range, to be the reason:
implied bandwidth = bytes on the wire / time lost. A ResNet-50 of 23.7 million parameters that falls
to 0.71x on four GPUs implies 0.09 to 0.7 GB/s, slower than 10 gigabit Ethernet, where PCIe needs
14 ms and NVLink 1.2.
What to do: not the link. Look at the wait for images, nn.DataParallel, SyncBatchNorm, too few cores
for all processes, and sockets where NVLink was expected; a trace of all ranks tells.
Sources: nccl-tests, doc/PERFORMANCE.md for the bytes; the ranges in `ringside.machine.yardsticks`.
"""

from __future__ import annotations

from statistics import median

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.figures import (
    EXPERIMENT,
    attributed,
    efficiency_of,
    gradient_bytes,
    large_busbw,
    num_devices,
    series_of,
    steady_windows,
    window_ms,
    wire_bytes,
    yardstick_for,
)
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause

CODE = "UNEXPLAINED-010"
CAUSE: Cause = "unexplained"
ORDER = 94

IMPLAUSIBLE = 0.25


def check(case: Case) -> Finding | None:
    lost_ms, share = _lost(case)
    num, sent = num_devices(case), gradient_bytes(case)
    healthy, source = _healthy(case)
    if share < WARNING or not sent or num is None or num < 2 or healthy is None:
        return None
    implied = wire_bytes(sent, num) / (lost_ms / 1000)
    if implied >= IMPLAUSIBLE * healthy:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        share_ratio=share,
        evidence=(
            seen("time lost", f"{lost_ms:.1f} ms a step", _source(case)),
            seen("on the wire", f"{wire_bytes(sent, num) / 1e6:.1f} MB a step", "events.jsonl"),
            seen("implied bandwidth", f"{implied / 1e9:.2f} GB/s", "both"),
            seen("of this link", f"{healthy / 1e9:.1f} GB/s", source),
        ),
        values={"implied": implied / 1e9, "healthy": healthy / 1e9},
    )


def _lost(case: Case) -> tuple[float, float]:
    """Milliseconds that the exchange costs, and as a share of the step.

    By the experiment; without one, what the step is longer than on one device.
    """
    found = attributed(case)
    if found is not None and found.communication is not None:
        part = found.communication
        return (part.ms, part.share_ratio) if part.state == "measured" else (0.0, 0.0)
    own, known = window_ms(case, "step"), efficiency_of(case)
    base = [window.step_ms for window in steady_windows(case.baseline)]
    if known.scaling != "weak" or not own or not base:
        return 0.0, 0.0
    lost = max(0.0, own - median(base))
    return lost, lost / own


def _source(case: Case) -> str:
    return EXPERIMENT if attributed(case) is not None else "events.jsonl"


def _healthy(case: Case) -> tuple[float | None, str]:
    if (swept := large_busbw(series_of(case))) is not None:
        return swept, "sweep"
    yardstick = yardstick_for(case)
    return (yardstick.low_bytes_per_s, yardstick.source) if yardstick is not None else (None, "")
