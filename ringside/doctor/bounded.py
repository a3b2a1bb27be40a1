"""One device alone bounds what several cost each other: in its step nobody is waited for.

A trace shows how long a device waits for an exchange, not what its step would gain without one:
where the host sets the pace, the device would wait for launches instead. Over sockets, in 16 bits
at 64 images, two H200s showed 62 % of the step exposed, and the same step over NVLink was 5 %
shorter (benchmarks/story_h200_2026-11-30.md).
"""

from __future__ import annotations

import msgspec

from ringside.doctor.bands import severity_of
from ringside.doctor.case import Case
from ringside.doctor.clocks import alone_ms, window_ms
from ringside.doctor.experiments import exchange_share
from ringside.doctor.figures import efficiency_of
from ringside.doctor.findings import Evidence, Finding
from ringside.words import say

OF_SEVERAL = frozenset({"link", "late_rank"})
"""Causes that one device alone does not have."""


def bounded(finding: Finding, case: Case) -> Finding:
    """The finding with no larger share than the step is longer than its baseline's.

    For equal images per device and step only: several micro-steps in a step cost less than as many
    steps of one device. An experiment that decided the exchange is nearer the truth.
    """
    own, alone = window_ms(case, "step"), alone_ms(case)
    share = finding.share_ratio
    if finding.cause not in OF_SEVERAL or share is None or not own or alone is None:
        return finding
    if case.record is None or case.record.spec is None or case.record.spec.num_micro_steps > 1:
        return finding
    known = efficiency_of(case)
    limit = max(0.0, 1 - alone / own)
    if known.scaling != "weak" or share <= limit or exchange_share(case) is not None:
        return finding
    told = Evidence(
        label=say("doctor.alone"),
        value=say("doctor.alone_of", alone=alone, own=own),
        source=known.baseline_id or "runs",
    )
    return msgspec.structs.replace(
        finding,
        share_ratio=limit,
        gain_ratio=None if finding.gain_ratio is None else min(finding.gain_ratio, limit),
        severity=severity_of(limit),
        sentence=f"{finding.sentence} {say('doctor.bounded', alone=alone, own=own, share=limit)}",
        evidence=(told, *finding.evidence),
    )
