"""Which finding is the verdict: what was measured weighs more than what may cost something.

1. wrong results, and what costs 20 % of the step or is a handicap of the program
2. what costs 10 to 20 %, and a handicap of the program whose cost nobody measured
3. a GPU that computes most of the time
4. what may cost something that nobody has measured: a variable, a process on the GPU
5. what is only good to know

Inside a group the ORDER of the checks counts: handicaps before data before links and late ranks
before launches. The experiment decides against a trace: it took the thing away.
"""

from __future__ import annotations

from ringside.doctor.bands import CRITICAL, WARNING
from ringside.doctor.findings import Finding

# Causes that lie in the program and cost nothing to remove.
HANDICAPS = frozenset({
    "data_parallel", "sync_batchnorm", "unbucketed", "host_sync", "unused_parameters",
})  # fmt: skip
# A share below which a cause gives way: something else may be larger.
_GIVES_WAY_BELOW = {
    "data": CRITICAL, "link": CRITICAL, "late_rank": CRITICAL, "sync_batchnorm": WARNING,
}  # fmt: skip


def weight_of(finding: Finding) -> int:
    """The group of a finding, smallest first."""
    if finding.cause == "compute":
        return 3
    if finding.severity == "note":
        return 5
    if finding.share_ratio is None:
        if finding.severity == "critical":
            return 1
        return 2 if finding.cause in HANDICAPS else 4
    limit = _GIVES_WAY_BELOW.get(finding.cause, 0.0)
    return 2 if finding.share_ratio < limit or finding.confidence == "low" else 1
