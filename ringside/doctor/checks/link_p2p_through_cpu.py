"""P2P goes through the CPU, where the way through host memory may be faster.

Seen when the sweep was faster with NCCL_P2P_DISABLE=1 than without, by more than the spread of its
repeats and 5 %. Without that experiment it is only suspected: NCCL's log says P2P, the path of the
ring is PHB or SYS, and there is no NVLink. On L20, A40 and RTX 8000 host memory was faster;
elsewhere it was not.
What to do: `ringside doctor` tries both. Keep NCCL_P2P_DISABLE=1, in the preset's environment, only
where it was faster.
Sources: NVIDIA/nccl#1817 (8 x L20: 6.13 GB/s through host memory, P2P slower) and #428,
nccl-tests#74 (A40), transformers#9371 (RTX 8000).
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import transport_of, trial_of
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.measurements.comparison import Trial
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "LINK-013"
CAUSE: Cause = "link"
ORDER = 64

THROUGH_CPU = ("PHB", "SYS")


def check(case: Case) -> Finding | None:
    trial = trial_of(case, NCCL_P2P_DISABLE="1")
    if trial is not None:
        return _tried(case, trial) if trial.outcome == "faster" else None
    path = _path(case)
    if path not in THROUGH_CPU or not (transport_of(case) or "").startswith("P2P"):
        return None
    return finding_of(
        CODE,
        CAUSE,
        "low",
        share_ratio=transfer_share(case),
        evidence=(seen("path of the ring", path, "nccl"),),
        values={"how": say("doctor.p2p_untried", path=path)},
    )


def _tried(case: Case, trial: Trial) -> Finding:
    """The experiment's answer: host memory is faster."""
    size, ratio = max(trial.ratios.items())
    return finding_of(
        CODE,
        CAUSE,
        "high",
        share_ratio=transfer_share(case),
        evidence=(
            seen(
                say("seen.without_p2p", mb=size / 1e6),
                say("seen.times_as_fast", ratio=ratio),
                "sweep",
            ),
            seen("its way", trial.transport or "-", "sweep"),
        ),
        values={"how": say("doctor.p2p_tried", mb=size / 1e6, ratio=ratio)},
    )


def _path(case: Case) -> str | None:
    rings = [p for p in case.nccl.patterns if p.name == "ring"] if case.nccl is not None else []
    return rings[0].path_inside if rings else None
