"""What each line of NCCL means. Formats are those of NCCL 2.4 to 2.30, read from its sources.

A rule is a pattern that fits a *whole* line and a function that writes what it says into the
collector. The first rule that fits ends the search, so the frequent ones come first.
"""

from __future__ import annotations

from ringside.nccl_log.collector import Collector
from ringside.nccl_log.lines import Line
from ringside.nccl_log.rules import complaints, setup, topology, transports, tuning

_RULES = (*tuning.RULES, *transports.RULES, *topology.RULES, *setup.RULES)


def read_line(facts: Collector, line: Line) -> None:
    """Write what one whole line says into the collector."""
    facts.num_lines += 1
    if line.host:
        facts.hosts.setdefault(facts.host(line))
    if line.level == "WARN":
        complaints.read(facts, line)
        return
    for pattern, apply in _RULES:
        found = pattern.match(line.text)
        if found is not None:
            apply(facts, line, found)
            return
    complaints.read(facts, line)
