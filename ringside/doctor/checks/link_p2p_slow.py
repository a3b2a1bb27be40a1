"""GPUs read each other over PCIe, but far slower than PCIe is: access control (ACS) may be on.

Seen when NCCL's log says P2P, no NVLink joins the GPUs, and the largest message reaches less than
half of the low end of what PCIe gives (8 GB/s). With ACS on, PCIe switches send every peer packet
up to the CPU and back: four GPUs needed 2.3 s for a batch that takes 0.48 s without it. Whether ACS
is on stands in registers that only root may read, so Ringside cannot see it; an IOMMU, a slot with
few lanes, or a busy host look the same from here.
What to do: `sudo lspci -vvv | grep ACSCtl`. A `+` at SrcValid, ReqRedir or UpstreamFwd of a bridge
above the GPUs decides it: turn ACS off in the firmware, or with setpci.
Sources: soumith/imagenet-multiGPU.torch#59, NVIDIA/nccl#1086 and #2079, NVIDIA/caffe#10.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.figures import best_busbw, is_over_nvlink, transport_of, yardstick_for
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of, seen
from ringside.doctor.shares import transfer_share
from ringside.machine.yardsticks import judge
from ringside.trace.findings import Cause

CODE = "LINK-010"
CAUSE: Cause = "link"
ORDER = 61


def check(case: Case) -> Finding | None:
    transport, best, yardstick = transport_of(case), best_busbw(case), yardstick_for(case)
    if transport is None or not transport.startswith("P2P") or is_over_nvlink(case) is not False:
        return None
    if best is None or yardstick is None or judge(best[0], yardstick) != "far below":
        return None
    busbw, source = best
    return finding_of(
        CODE,
        CAUSE,
        "medium" if source == "sweep" else "low",
        share_ratio=transfer_share(case),
        evidence=(
            seen("way of the bytes", transport, "nccl"),
            seen("bus bandwidth", f"{busbw / 1e9:.2f} GB/s", source),
            seen("healthy from", f"{yardstick.low_bytes_per_s / 1e9:.0f} GB/s", yardstick.source),
        ),
        values={"busbw": busbw / 1e9, "low": yardstick.low_bytes_per_s / 1e9},
    )
