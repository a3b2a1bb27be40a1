"""Rings, trees, channel counts, and the paths that NCCL found between the parts of a host."""

from __future__ import annotations

import itertools
import re

from ringside.nccl_log.collector import Collector
from ringside.nccl_log.facts import LinkPath, Pattern, RingLink, TreeNode
from ringside.nccl_log.lines import Line
from ringside.nccl_log.rules.rule import Rule

# NCCL_TOPO_PATTERN_* of src/include/graph.h.
PATTERNS = {
    1: "balanced tree", 2: "split tree", 3: "tree", 4: "ring", 5: "NVLS", 6: "CollNet direct",
}  # fmt: skip
# NCCL cuts its line of trees at 1023 characters, in the middle of a number perhaps.
_LONGEST_LINE = 1000


def _ring(facts: Collector, line: Line, found: re.Match[str]) -> None:
    name, channel = facts.communicator(line), int(found[1])
    before, here, after = int(found[2]), int(found[3]), int(found[4])
    for src, dst in ((before, here), (here, after)):
        link = RingLink(communicator=name, channel=channel, src=src, dst=dst)
        facts.ring_links.setdefault(link)


def _order(facts: Collector, line: Line, found: re.Match[str]) -> None:
    """`Channel 00/02 : 0 1 2`: the whole ring of a channel, printed by rank 0."""
    name, ranks = facts.communicator(line), [int(rank) for rank in found[3].split()]
    if found[2]:
        facts.num_channels["listed"] = max(facts.num_channels.get("listed", 0), int(found[2]))
    if len(ranks) < 2:
        return
    for src, dst in itertools.pairwise([*ranks, ranks[0]]):
        link = RingLink(communicator=name, channel=int(found[1]), src=src, dst=dst)
        facts.ring_links.setdefault(link)


_TREE_DOWN_UP = re.compile(r"\[(\d+)\] (-?\d+(?:/-?\d+)*)->(\d+)->(-?\d+)(?=[ |]|$)")
_TREE_UP_DOWN = re.compile(r"\[(\d+)\] (-?\d+)->(\d+)->(-?\d+(?:/-?\d+)+)(?= |$)")


def _trees(facts: Collector, line: Line, found: re.Match[str]) -> None:
    text = found[1]
    if len(text) >= _LONGEST_LINE:
        text = text.rpartition(" [")[0]
    for channel, children, rank, parent in _TREE_DOWN_UP.findall(text):
        _add_tree(facts, line, channel, rank, parent, children)
    for channel, parent, rank, children in _TREE_UP_DOWN.findall(text):
        _add_tree(facts, line, channel, rank, parent, children)


def _tree(facts: Collector, line: Line, found: re.Match[str]) -> None:
    _add_tree(facts, line, found[1], found[3], found[2], found[4])


def _add_tree(
    facts: Collector, line: Line, channel: str, rank: str, parent: str, children: str
) -> None:
    node = TreeNode(
        communicator=facts.communicator(line),
        channel=int(channel),
        rank=int(rank),
        parent=int(parent) if int(parent) >= 0 else None,
        children=tuple(int(child) for child in children.split("/") if int(child) >= 0),
    )
    facts.trees.setdefault((node.communicator, node.channel, node.rank), node)


def _channels(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    """A split communicator may have fewer; those of the one with the most are the job's."""
    for part in found[0].split(", "):
        number, _, kind = part.partition(" ")
        kind = kind.replace("channels", "").replace("  ", " ").strip()
        facts.num_channels[kind] = max(facts.num_channels.get(kind, 0), int(number))


def _pattern(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    inside, _, between = found["path"].partition("/")
    named = inside.isalpha()
    pattern = Pattern(
        name=PATTERNS.get(int(found["id"]), f"pattern {found['id']}"),
        num_channels=int(found["channels"]),
        bandwidth_inside_gb_per_s=float(found["inside"]),
        bandwidth_between_gb_per_s=float(found["between"]),
        path_inside=inside if named else None,
        path_between=between if named else None,
    )
    facts.patterns.setdefault(pattern)


_PATH = re.compile(r"(\w+/[0-9a-f-]+) \((\d+)/([\d.]+)/([A-Z0-9]{3})\)")


def _paths(facts: Collector, line: Line, found: re.Match[str]) -> None:
    host = facts.host(line)
    for dst, hops, bandwidth, kind in _PATH.findall(found[2]):
        path = LinkPath(
            src=found[1], dst=dst, hops=int(hops), bandwidth_gb_per_s=float(bandwidth), kind=kind
        )
        facts.paths.setdefault((host, path.src, path.dst), path)


def _nvls(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    facts.nvls_available = found[1] is None


RULES: tuple[Rule, ...] = (
    (re.compile(r"Ring (\d+) : (\d+) -> (\d+) -> (\d+)$"), _ring),
    (re.compile(r"Channel (\d+)(?:/(\d+))? : +(\d+(?: +\d+)*)$"), _order),
    (re.compile(r"Trees( \[\d+\].*)"), _trees),
    (re.compile(r"Tree (\d+) : (-?\d+) -> (\d+) -> (-?\d+(?:/-?\d+)*)$"), _tree),
    (re.compile(r"\d+ coll channels(?:, \d+ \w+ channels(?: per peer)?)*$"), _channels),
    (re.compile(
        r"Pattern (?P<id>\d+), crossNic \d+, nChannels (?P<channels>\d+), (?:bw|speed) "
        r"(?P<inside>[\d.]+)/(?P<between>[\d.]+), (?:nvlink \d+, )?type (?P<path>[A-Z0-9/]+), "
        r"sameChannels \d+$"), _pattern),
    (re.compile(r"((?:GPU|NET|NVS|CPU)/[0-9a-f-]+) :((?:\w+/[0-9a-f-]+ \([\w./]+\)\s*)+)$"),
     _paths),
    (re.compile(r"NVLS multicast support is (not )?available on dev \d+(?: \(.*\))?$"), _nvls),
)  # fmt: skip
