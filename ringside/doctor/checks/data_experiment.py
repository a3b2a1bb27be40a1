"""With made-up images that lie on the device already, the step is shorter: images cost.

Seen when that step is shorter than the whole one by 10 % of it or more and by more than the spread
of the blocks. Waiting for the loader, copies to the device, and the cores that decoding takes from
training are in the difference. No profiler runs: the input was taken away and the step timed.
What the run's clocks (DATA-010) and a trace (DATA-001) show of the same wait is its evidence.
What to do: more loader workers as far as there are cores, decoding on the GPU where there is one
and it does not decode yet, prepared images.
Sources: the arms are those of `ringside.measurements.attribution`; TraceML's bands.
"""

from __future__ import annotations

from ringside.doctor.case import Case
from ringside.doctor.decoding import decoding_to_try
from ringside.doctor.experiments import answer_of, attributed, parts_shown, surely
from ringside.doctor.findings import Finding
from ringside.doctor.phrasing import finding_of
from ringside.trace.findings import Cause

CODE = "DATA-002"
CAUSE: Cause = "data"
ORDER = 49


def check(case: Case) -> Finding | None:
    found = attributed(case)
    part = found.input if found is not None else None
    if found is None or part is None or answer_of(part) != "costs":
        return None
    return finding_of(
        CODE,
        CAUSE,
        surely(part),
        share_ratio=part.share_ratio,
        evidence=parts_shown(found),
        values={
            "ms": part.ms,
            "spread": part.spread_ms,
            "decoding": decoding_to_try(case),
        },
    )
