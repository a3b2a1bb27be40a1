"""Versions, ranks, the network and its cards, and the variables that NCCL obeyed."""

from __future__ import annotations

import re

import msgspec

from ringside.nccl_log.collector import Collector
from ringside.nccl_log.facts import Nic, Rank
from ringside.nccl_log.lines import Line
from ringside.nccl_log.rules.rule import Rule


def _version(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    facts.version = facts.version or (found[1], found[2])


def _rank(facts: Collector, line: Line, found: re.Match[str]) -> None:
    """A rank begins or completes its communicator.

    Up to 2.16 the line names a pointer only, which the ranks do not share. The children of one
    parent are told apart by how many came before and by their colour.
    """
    name = found["id"]
    if name is None and found["colour"] is not None:
        name = f"child {found['count']}, colour {found['colour']}"
    rank = int(found["rank"])
    facts.begin(line, name)
    facts.num_ranks[name] = max(facts.num_ranks.get(name, 0), int(found["nranks"]))
    facts.ranks.setdefault(
        (name, rank),
        Rank(
            rank=rank,
            host=facts.host(line),
            pid=line.pid,
            device=int(found["device"]),
            bus_id=found["bus"],
        ),
    )


def _nodes(facts: Collector, line: Line, found: re.Match[str]) -> None:
    facts.num_nodes[facts.communicator(line)] = int(found[1])


def _init_time(facts: Collector, line: Line, found: re.Match[str]) -> None:
    key = facts.communicator(line), int(found[1])
    rank = facts.ranks.get(key)
    if rank is not None:
        facts.ranks[key] = msgspec.structs.replace(rank, init_s=float(found[2]))


def _network(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    """With two plugins on offer the last one named is the one assigned."""
    facts.network = found[1]


_CARD = re.compile(r"\[(\d+)\](\S+)")


def _cards(facts: Collector, line: Line, found: re.Match[str]) -> None:
    for index, name in _CARD.findall(found[2].partition(";")[0]):
        # `eth0:10.0.0.1<0>` has the address behind the name, `mlx5_0:1/RoCE` the port and link.
        if "<" in name:
            name = name.partition(":")[0]
        card = Nic(network=found[1], index=int(index), name=name, host=facts.host(line))
        facts.nics.setdefault(card)


def _no_infiniband(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    facts.missing_infiniband = facts.missing_infiniband or found[0].removeprefix("NET/IB : ")


def _variable(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    name, value = found[1], found[2].strip()
    # Numbers are printed with a full stop behind them, other values without.
    facts.environment[name] = value[:-1] if re.fullmatch(r"-?\d+\.", value) else value


RULES: tuple[Rule, ...] = (
    (re.compile(
        r"(?:\[Rank \d+\] )?(?:\w+ )?comm 0x[0-9a-f]+ rank (?P<rank>\d+) nranks (?P<nranks>\d+) "
        r"cudaDev (?P<device>\d+)(?: nvmlDev \d+)?(?: busId (?P<bus>[0-9a-f]+))?"
        r"(?: commId 0x(?P<id>[0-9a-f]+))?"
        r"(?: parent 0x[0-9a-f]+ \w+ (?P<count>-?\d+) color (?P<colour>-?\d+) key -?\d+)? ?"
        r"- Init (?:START|COMPLETE)$"), _rank),
    (re.compile(r"(?:\w+ )?comm 0x[0-9a-f]+ rank \d+ nRanks \d+ nNodes (\d+) "), _nodes),
    (re.compile(r"Init timings(?: - \w+)?: rank (\d+) nranks \d+ total ([\d.]+) \("), _init_time),
    (re.compile(r"(?:Using (?:internal )?[Nn]etwork|Assigned NET plugin) (.+?)(?: to comm)?$"),
     _network),
    (re.compile(r"NET/([\w-]+) : Using((?: ?\[\d+\]\S+)+.*)$"), _cards),
    (re.compile(r"NET/IB : No device found\.$"), _no_infiniband),
    (re.compile(r"((?:NCCL|CUDA)_\w+) set by environment to (.*)$"), _variable),
    (re.compile(r"(NCCL_\w+) set to (\S+)$"), _variable),
    (re.compile(r"Comm config \w+ reset to (NCCL_\w+)=(.*)$"), _variable),
    (re.compile(r"NCCL version (\d+\.\d+\.\d+[^+\s]*)(?:\+cuda([\d.]+))?$"), _version),
)  # fmt: skip
