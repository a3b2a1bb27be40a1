"""How long `ringside trace` takes for a large file, beside a bare decode of the same file.

    python benchmarks/trace_reader.py TRACE      # any trace, such as a rank's of a short run
    python benchmarks/trace_reader.py TRACE --hta /tmp/hta/bin/python

With `--hta`, HolisticTraceAnalysis reads the same file in the same run: the Python that is named
has it (`pip install HolisticTraceAnalysis`). It is asked for what ours gives at least: overlap and
the temporal breakdown.

The trace is written again and again, shifted in time, until it holds 1.2 million events. All run in
processes of their own, in turn, five times; bars: 3 bare decodes, 1.5 GB of memory. The floor is
`msgspec.json.decode` into plain objects without the garbage collector, which alone would take as
long again.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy

from ringside.trace.files import read_bytes

NUM_EVENTS = 1_200_000
REPEATS = 5
MAX_DECODES, MAX_GB = 3.0, 1.5

FLOOR = """
import gc, msgspec
gc.disable()
data = open(path, "rb").read()
begin = time.perf_counter()
kept = msgspec.json.decode(data)
"""
READER = """
from pathlib import Path
from ringside.trace import analyse, judge, read_traces
begin = time.perf_counter()
kept = judge(analyse(read_traces([Path(path)])[0]))
"""
HTA = """
import logging
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
begin = time.perf_counter()
read = TraceAnalysis(trace_files={0: path}, trace_dir="/")
kept = read.get_comm_comp_overlap(visualize=False), read.get_temporal_breakdown(visualize=False)
"""
FRAME = """
import resource, sys, time
path = sys.argv[1]
{work}
print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def main() -> int:
    """Print both and their ratio; 1 when one is over its bar."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--hta", help="a Python that has HolisticTraceAnalysis")
    given = parser.parse_args()
    source = given.trace
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        num = replicate(source, path)
        size = path.stat().st_size / 1e6
        print(f"{num:,} events, {size:.0f} MB, from {source.name}")
        print(
            f"Python {platform.python_version()}, numpy {numpy.__version__}, {platform.machine()}"
        )
        works = [Work(FLOOR, sys.executable), Work(READER, sys.executable)]
        works += [Work(HTA, given.hta)] if given.hta else []
        found = measure(works, path)
    (floor, floor_gb), (reader, reader_gb), *others = found
    ratios = sorted(a / b for a, b in zip(reader, floor, strict=True))
    ratio = statistics.median(ratios)
    print(f"bare decode  {spread(floor)}  {floor_gb:.2f} GB")
    print(f"reader       {spread(reader)}  {reader_gb:.2f} GB")
    print(
        f"ratio        {ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), at most {MAX_DECODES:g}"
    )
    for other, other_gb in others:
        version = installed(given.hta, "HolisticTraceAnalysis")
        print(f"HTA {version}    {spread(other)}  {other_gb:.2f} GB")
        times = sorted(b / a for a, b in zip(reader, other, strict=True))
        print(f"HTA / reader {statistics.median(times):.1f} ({times[0]:.1f} to {times[-1]:.1f})")
    return 0 if ratio <= MAX_DECODES and reader_gb <= MAX_GB else 1


def replicate(source: Path, target: Path) -> int:
    """Write a trace until it has `NUM_EVENTS`; each copy begins after the one before."""
    content = msgspec.json.decode(read_bytes(source))
    events = content.pop("traceEvents")
    timed = [event for event in events if event.get("ph") == "X"]
    length = max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed)
    copies = -(-NUM_EVENTS // len(events))
    numbers = [e["args"].get("correlation", 0) for e in timed if isinstance(e.get("args"), dict)]
    step = 1 + max(numbers, default=0)
    with target.open("wb") as stream:
        stream.write(msgspec.json.encode(content)[:-1] + b', "traceEvents": [\n')
        for copy in range(copies):
            shifted = [moved(event, copy * length, copy * step) for event in events]
            lines = b",\n".join(msgspec.json.encode(event) for event in shifted)
            stream.write(lines + (b",\n" if copy + 1 < copies else b"]}"))
    return copies * len(events)


def moved(event: dict[str, Any], ts: float, correlation: int) -> dict[str, Any]:
    """The event of a later copy: its time, and the number that ties a launch to its kernel."""
    later = event | {"ts": event["ts"] + ts} if "ts" in event else dict(event)
    args = event.get("args")
    if isinstance(args, dict) and "correlation" in args:
        later["args"] = args | {"correlation": args["correlation"] + correlation}
    return later


def installed(python: str, package: str) -> str:
    """The version of a package that another Python has."""
    code = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
    argv = [python, "-c", code, package]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


class Work(NamedTuple):
    """What is timed, and the Python that runs it."""

    code: str
    python: str


def measure(works: list[Work], path: Path) -> list[tuple[list[float], float]]:
    """Of each work the seconds of its repeats, the first left out, and the most memory in GB.

    They take turns, so that what else the machine does meets all of them.
    """
    rounds = [[run_once(work, path) for work in works] for _ in range(REPEATS + 1)]
    return [
        ([seconds for seconds, _ in own[1:]], max(gb for _, gb in own))
        for own in zip(*rounds, strict=True)
    ]


def run_once(work: Work, path: Path) -> tuple[float, float]:
    """Seconds and GB of one process."""
    argv = [work.python, "-c", FRAME.format(work=work.code), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    time_s, memory = done.stdout.split()
    return float(time_s), int(memory) / 1e6


def spread(seconds: list[float]) -> str:
    """Middle, least and most, in seconds."""
    low, high = min(seconds), max(seconds)
    return f"{statistics.median(seconds):.2f} s ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    sys.exit(main())
