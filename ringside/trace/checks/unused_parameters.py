"""DDP looks for unused parameters in every step, which also keeps its first bucket layout.

Seen when a trace holds DDP's search. The share is that of the search on the host alone; that the
buckets are never laid out anew comes on top, and depends on the model. It does not make the
exchange synchronous, as is often said.
What to do: turn find_unused_parameters off; if DDP then complains and the same ones are unused in
every step, use static_graph.
Sources: torch/csrc/distributed/c10d/reducer.hpp; hamer#97, DAT#74, composer#9 and #48 (4 to 5 %).
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import URGENT
from ringside.words import say

CODE = "UNUSED-001"
CAUSE: Cause = "unused_parameters"
ORDER = 80


def check(facts: Facts) -> Finding | None:
    """The share is the search on the host alone; the worse layout of buckets comes on top."""
    pace = facts.pace
    if not pace.host.num_searches:
        return None
    share = pace.host.search_us / pace.breakdown.wall_us
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say("trace.unused_parameters", share=share, num=pace.host.num_searches),
        # That it is switched on is certain, whatever it costs.
        confidence=confidence_of(facts, URGENT.value),
        refutation=say("trace.unused_parameters_refutation"),
    )
