"""The limits that several checks share; each says where it comes from.

The bands are those of the traces (`ringside.trace.thresholds`): below 10 % of the step nothing is
worth a try, from 20 % on a cause is urgent.
"""

from __future__ import annotations

from ringside.doctor.findings import Severity
from ringside.trace.thresholds import ACT, URGENT

WARNING, CRITICAL = ACT.value, URGENT.value


def severity_of(share_ratio: float | None, *, otherwise: Severity = "warning") -> Severity:
    """critical from 20 % of the step on, warning from 10 %, else a note; `otherwise` unmeasured."""
    if share_ratio is None:
        return otherwise
    if share_ratio >= CRITICAL:
        return "critical"
    return "warning" if share_ratio >= WARNING else "note"
