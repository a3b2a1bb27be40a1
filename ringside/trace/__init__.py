"""Reads the traces of torch.profiler and says what holds a run back.

    traces, faults = read_traces([Path("trace")])
    facts = analyse(traces)
    verdict = judge(facts)

Importing this package does not load numpy; reading a trace does.
"""

from ringside.trace.analysis import analyse
from ringside.trace.facts import Breakdown, Bucket, Facts, RankFacts
from ringside.trace.findings import Cause, Confidence, Finding, Verdict
from ringside.trace.judging import judge
from ringside.trace.reading import read_trace, read_traces

__all__ = [
    "Breakdown", "Bucket", "Cause", "Confidence", "Facts", "Finding", "RankFacts", "Verdict",
    "analyse", "judge", "read_trace", "read_traces",
]  # fmt: skip
