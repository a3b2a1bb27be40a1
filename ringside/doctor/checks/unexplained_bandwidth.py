"""The step lost more time than any exchange over this link can take.

Seen when leaving the exchange out saves 10 % of the step or more (without that experiment: when the
step is 10 % longer than on one device, at equal images per device), and the link would have to be
four times slower than a sweep or a trace measured it to be the reason: implied bandwidth = bytes on
the wire / time lost. Nothing is said where nobody measured the link. A ResNet-50 of 23.7 million
parameters that falls to 0.71x on four GPUs implies 0.09 to 0.7 GB/s, slower than 10 gigabit
Ethernet, where PCIe needs 14 ms and NVLink 1.2.
What to do: not the link. Look at the wait for images, nn.DataParallel, SyncBatchNorm, too few cores
for all processes, and sockets where NVLink was expected; a trace of all ranks tells.
Sources: nccl-tests, doc/PERFORMANCE.md for the bytes.
"""

from __future__ import annotations

from typing import NamedTuple

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.clocks import alone_ms, window_ms
from ringside.doctor.experiments import EXPERIMENT, attributed
from ringside.doctor.figures import (
    best_busbw,
    efficiency_of,
    gradient_bytes,
    num_devices,
    num_passes,
    source_of_bytes,
    wire_bytes,
)
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "UNEXPLAINED-010"
CAUSE: Cause = "unexplained"
ORDER = 94

IMPLAUSIBLE = 0.25


def check(case: Case) -> Finding | None:
    lost = _by_experiment(case) or _by_baseline(case)
    num, sent, best = num_devices(case), gradient_bytes(case), best_busbw(case)
    if lost is None or not sent or num is None or num < 2 or best is None:
        return None
    crossed = wire_bytes(sent, num, num_passes(case))
    if lost.share < WARNING or crossed / (lost.ms / 1000) >= IMPLAUSIBLE * best[0]:
        return None
    implied = crossed / (lost.ms / 1000)
    return finding_of(
        CODE,
        CAUSE,
        "medium",
        share_ratio=lost.share,
        evidence=(
            seen("time lost", say("seen.a_step", amount=f"{lost.ms:.1f} ms"), lost.source),
            seen(
                "on the wire",
                say("seen.a_step", amount=f"{crossed / 1e6:.1f} MB"),
                source_of_bytes(case),
            ),
            seen("implied bandwidth", f"{implied / 1e9:.2f} GB/s", "both"),
            seen("of this link, measured", f"{best[0] / 1e9:.1f} GB/s", best[1]),
        ),
        values={"implied": implied / 1e9, "measured": best[0] / 1e9},
    )


class Lost(NamedTuple):
    """Milliseconds of a step, as a share of it too, and where they come from."""

    ms: float
    share: float
    source: str


def _by_experiment(case: Case) -> Lost | None:
    """What leaving the exchange out saves; nothing within noise."""
    found = attributed(case)
    part = found.communication if found is not None else None
    if part is None:
        return None
    return Lost(part.shown_ms, part.share_ratio if part.shown_ms else 0.0, EXPERIMENT)


def _by_baseline(case: Case) -> Lost | None:
    """What the step is longer than on one device, for as many images."""
    own, base = window_ms(case, "step"), alone_ms(case)
    if efficiency_of(case).scaling != "weak" or not own or base is None:
        return None
    lost = max(0.0, own - base)
    return Lost(lost, lost / own, "events.jsonl")
