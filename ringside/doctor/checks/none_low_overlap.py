"""Low overlap, and nothing to gain from more of it.

Seen when compute hides less than 60 % of the communication, and what it does not hide is below 10 %
of the step. A well-known rule calls for another configuration below 60 %. It looks at the wrong
figure: in a trace of ResNet-50 on two A100s 14 % of the communication overlaps, and only 5 to 8 %
of the step is exposed, while the GPU idles 78 % for other reasons.
What to do: nothing about the overlap. Look at the exposed share; from 10 % on it is worth a try.
Sources: HolisticTraceAnalysis' test data, nccl_parser_config; TraceML's bands.
"""

from __future__ import annotations

from ringside.doctor.bands import WARNING
from ringside.doctor.case import Case
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import file_of, finding_of, seen
from ringside.doctor.shares import exposed_share
from ringside.trace.findings import Cause
from ringside.words import percent, say

CODE = "NONE-011"
CAUSE: Cause = "none"
ORDER = 111

OFTEN_DEMANDED = 0.6


def check(case: Case) -> Finding | None:
    exposed = exposed_share(case)
    if case.facts is None or exposed is None or exposed >= WARNING:
        return None
    pace = case.facts.pace
    overlap = pace.totals.overlap_ratio
    if overlap is None or overlap >= OFTEN_DEMANDED:
        return None
    return finding_of(
        CODE,
        CAUSE,
        "high" if case.facts.is_matched else "medium",
        share_ratio=exposed,
        severity="note",
        evidence=(
            seen("overlap", say("seen.of_communication", share=percent(overlap)), file_of(pace)),
            seen("exposed", say("seen.of_step", share=percent(exposed, 1)), file_of(pace)),
        ),
        values={"overlap": overlap},
    )
