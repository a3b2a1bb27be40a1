"""DDP looks for unused parameters in every step, which also keeps its first bucket layout."""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Finding
from ringside.trace.thresholds import URGENT
from ringside.words import say

ORDER = 80


def check(facts: Facts) -> Finding | None:
    """The share is the search on the host alone; the worse layout of buckets comes on top."""
    pace = facts.pace
    if not pace.host.num_searches:
        return None
    share = pace.host.search_us / pace.breakdown.wall_us
    return Finding(
        cause="unused_parameters",
        share_ratio=share,
        sentence=say("trace.unused_parameters", share=share, num=pace.host.num_searches),
        # That it is switched on is certain, whatever it costs.
        confidence=confidence_of(facts, URGENT.value),
        refutation=say("trace.unused_parameters_refutation"),
    )
