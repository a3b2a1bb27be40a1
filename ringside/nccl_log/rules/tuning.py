"""Which algorithm NCCL took for which size, its own predictions, and the collectives called.

Up to 2.23 algorithms and protocols are numbers, and a *predicted* time stands behind them; since
2.24 they are names, with a range of channels (src/enqueue.cc, src/graph/tuning.cc).
"""

from __future__ import annotations

import re

from ringside.nccl_log.collector import Collector
from ringside.nccl_log.facts import Choice, Operation, Prediction
from ringside.nccl_log.lines import Line
from ringside.nccl_log.rules.rule import Rule

# NCCL_ALGO_* and NCCL_PROTO_* of src/include/nccl_common.h and devcomm.h.
ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
PROTOCOLS = ("LL", "LL128", "SIMPLE")
# ncclDataType_t of nccl.h: name and bytes.
TYPES = (
    ("int8", 1), ("uint8", 1), ("int32", 4), ("uint32", 4), ("int64", 8), ("uint64", 8),
    ("float16", 2), ("float32", 4), ("float64", 8), ("bfloat16", 2), ("float8e4m3", 1),
    ("float8e5m2", 1),
)  # fmt: skip
_NOT_NAMED = "collective"  # 2.20 to 2.22 do not say which function


def _named(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    choice = Choice(
        function=found[1],
        size_bytes=int(found[2]),
        algorithm=found[3],
        protocol=found[4],
        num_channels=int(found[6]) - int(found[5]) + 1,
        calls=0,
    )
    facts.choices[choice] += 1


def _numbered(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    choice = Choice(
        function=found[1] or _NOT_NAMED,
        size_bytes=int(found[2]),
        algorithm=_entry(ALGORITHMS, int(found[3])),
        protocol=_entry(PROTOCOLS, int(found[4])),
        num_channels=None,
        calls=0,
        predicted_us=float(found[5]),
    )
    facts.choices[choice] += 1


def _symmetric(facts: Collector, _line: Line, found: re.Match[str]) -> None:
    choice = Choice(
        function=found[1],
        size_bytes=int(found[2]),
        algorithm="SYMMETRIC",
        protocol=found[3],
        num_channels=int(found[4]),
        calls=0,
    )
    facts.choices[choice] += 1


def _entry(names: tuple[str, ...], number: int) -> str:
    return names[number] if number < len(names) else str(number)


def _operation(facts: Collector, line: Line, found: re.Match[str]) -> None:
    count, number = int(found[2]), int(found[3])
    known = number < len(TYPES)
    dtype, width = TYPES[number] if known else (f"type {number}", 0)
    size_bytes = count * width if known else None
    operation = Operation(
        function=found[1], count=count, dtype=dtype, size_bytes=size_bytes, calls=0
    )
    facts.operations[operation][facts.process(line)] += 1


def _algorithms(facts: Collector, line: Line, found: re.Match[str]) -> None:
    """The head of a block: three columns (the protocols) for each algorithm."""
    columns = [(name, protocol) for name in found[1].split("|")[:-1] for protocol in PROTOCOLS]
    facts.columns[facts.process(line)] = [(a.strip().upper(), p) for a, p in columns], set()


def _old_algorithms(facts: Collector, line: Line, found: re.Match[str]) -> None:
    """The head of the one block of 2.5 to 2.17: `Tree/ LL | Tree/ LL128 | ...`."""
    pairs = [cell.split("/") for cell in found[1].split("|")[:-1]]
    columns = [(pair[0].strip().upper(), pair[-1].strip().upper()) for pair in pairs]
    facts.columns[facts.process(line)] = columns, set()


def _row(facts: Collector, line: Line, found: re.Match[str]) -> None:
    """A row of the block; one whose head was lost would have another block's columns."""
    function, cells = found[1], found[2].split("|")[:-1]
    columns, seen = facts.columns.get(facts.process(line), ([], set()))
    if len(cells) != len(columns) or function in seen:
        facts.columns.pop(facts.process(line), None)
        return
    seen.add(function)
    for (algorithm, protocol), cell in zip(columns, cells, strict=True):
        latency, bandwidth = (float(number) for number in cell.split("/"))
        if bandwidth > 0:  # 0.0 stands for: cannot be used here
            prediction = Prediction(
                function=function,
                algorithm=algorithm,
                protocol=protocol,
                latency_us=latency,
                bandwidth_gb_per_s=bandwidth,
            )
            facts.predictions.setdefault((function, algorithm, protocol), prediction)


RULES: tuple[Rule, ...] = (
    (re.compile(
        r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\}$"),
     _named),
    (re.compile(
        r"(\w+): opCount [0-9a-f]+ sendbuff \S+ recvbuff \S+ count (\d+) datatype (\d+) op \d+ "
        r"root -?\d+ comm \S+ \[nranks=\d+\] stream \S+$"), _operation),
    (re.compile(
        r"(?:(\w+): )?(\d+) Bytes -> Algo (\d+) proto (\d+) time (\d+(?:\.\d+)?)$"), _numbered),
    (re.compile(r"(\w+) \[Symmetric\]: (\d+) Bytes -> Kernel (\w+) nchannels (\d+) .*$"),
     _symmetric),
    (re.compile(r"Algorithm   \|((?:\s+\w+\s+\|)+)$"), _algorithms),
    (re.compile(r"Latency/AlgBw \|((?:\s+\w+/\s*\w+ \|)+)$"), _old_algorithms),
    (re.compile(r"(\w+) \|((?:\s*\d+\.\d/\s*\d+\.\d \|)+)$"), _row),
)  # fmt: skip
