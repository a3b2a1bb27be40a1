"""NVLink joins only some of the GPUs.

Seen when, of three GPUs or more, some pairs have NVLink and others do not. A ring over all of them
is as fast as its slowest part: on A100s with bridges an all-reduce fell from 208 to 20 GB/s as soon
as a third GPU joined.
What to do: for two GPUs choose a pair that NVLink joins (CUDA_VISIBLE_DEVICES); for more, send
fewer bytes, and measure whether more GPUs pay.
Source: NVIDIA/nccl-tests#178.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.trace.findings import Cause
from ringside.words import say

CODE = "MACHINE-008"
CAUSE: Cause = "link"
ORDER = 63

MAX_PAIRS = 8


def check(case: Case) -> Finding | None:
    links = case.machine.links if case.machine else ()
    joined = [link for link in links if link.kind == "nvlink"]
    if not joined or len(joined) == len(links):
        return None
    pairs = ", ".join(f"{link.a}-{link.b}" for link in joined[:MAX_PAIRS])
    return finding_of(
        CODE,
        CAUSE,
        "high",
        evidence=(
            seen("pairs with NVLink", say("seen.pairs", n=len(joined), all=len(links)), "NVML"),
            seen("these", pairs, "NVML"),
        ),
        values={"num": len(joined), "of": len(links), "pairs": pairs},
    )
