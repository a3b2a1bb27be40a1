"""The GPU waits for images: the loader's or the `data` mark's time in which nothing runs."""

from __future__ import annotations

from ringside.trace.confidence import confidence_of, per_step_us
from ringside.trace.facts import Facts
from ringside.trace.findings import Finding
from ringside.trace.thresholds import ACT, URGENT
from ringside.words import say

ORDER = 50


def check(facts: Facts) -> Finding | None:
    pace = facts.pace
    share = pace.breakdown.ratio("data_idle")
    if share < ACT.value:
        return None
    return Finding(
        cause="data",
        share_ratio=share,
        sentence=say(
            "trace.data", rank=pace.rank, share=share,
            ms=per_step_us(pace, pace.host.data_wait_us) / 1000,
        ),
        confidence=confidence_of(facts, share),
        refutation=say("trace.data_refutation"),
        is_minor=share < URGENT.value,
    )  # fmt: skip
