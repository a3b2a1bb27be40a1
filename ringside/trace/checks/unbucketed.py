"""Gradients sent one by one, as a loop over the parameters does, instead of in buckets.

Seen when there are 50 all-reduces a step or more, of less than 1 MiB in the mean (or 1 ms where
sizes are unknown), and 10 % of the step or more goes by between the first and the last without
compute. DDP sends the 94.85 MB of a ResNet-50 in 5 messages; by hand it takes 161.
What to do: DDP, which sends a bucket while the backward pass still runs.
Sources: HolisticTraceAnalysis' test data, df_index_resolver: 404 all-reduces a step, none hidden.
"""

from __future__ import annotations

from ringside.trace.confidence import confidence_of
from ringside.trace.facts import Facts, RankFacts
from ringside.trace.findings import Cause, Finding
from ringside.trace.thresholds import ACT, SMALL_REDUCE_BYTES, SMALL_REDUCE_US, SMALL_REDUCES
from ringside.words import say

CODE = "BUCKET-001"
CAUSE: Cause = "unbucketed"
ORDER = 30


def check(facts: Facts) -> Finding | None:
    """The cost is the stretch from the first to the last all-reduce in which nothing computes."""
    pace = facts.pace
    share = min(pace.reduce_stretch_us / pace.breakdown.wall_us, 1.0)
    if pace.num_all_reduces < SMALL_REDUCES.value or not _are_small(pace) or share < ACT.value:
        return None
    return Finding(
        code=CODE,
        cause=CAUSE,
        share_ratio=share,
        sentence=say(
            "trace.unbucketed", num=pace.num_all_reduces, share=share,
            overlap=pace.totals.overlap_ratio or 0.0,
        ),
        confidence=confidence_of(facts, share),
        refutation=say("trace.unbucketed_refutation"),
    )  # fmt: skip


def _are_small(rank: RankFacts) -> bool:
    if rank.all_reduce_bytes is not None:
        return rank.all_reduce_bytes < SMALL_REDUCE_BYTES.value
    return rank.all_reduce_us is not None and rank.all_reduce_us < SMALL_REDUCE_US.value
