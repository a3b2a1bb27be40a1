"""How long `ringside trace` takes for a large file, beside a bare decode of the same file.

    python benchmarks/trace_reader.py TRACE      # any trace, such as a rank's of a short run

The trace is written again and again, shifted in time, until it holds 1.2 million events. Reader and
floor each run in a process of their own, five times; bars: 3 bare decodes, 1.5 GB of memory. The
floor is `msgspec.json.decode` into plain objects without the garbage collector, which alone would
take as long again.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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
    source = parser.parse_args().trace
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        num = replicate(source, path)
        size = path.stat().st_size / 1e6
        print(f"{num:,} events, {size:.0f} MB, from {source.name}")
        print(
            f"Python {platform.python_version()}, numpy {numpy.__version__}, {platform.machine()}"
        )
        floor, floor_gb = measure(FLOOR, path)
        reader, reader_gb = measure(READER, path)
    ratios = sorted(a / b for a, b in zip(reader, floor, strict=True))
    ratio = statistics.median(ratios)
    print(f"bare decode  {spread(floor)}  {floor_gb:.2f} GB")
    print(f"reader       {spread(reader)}  {reader_gb:.2f} GB")
    print(
        f"ratio        {ratio:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}), at most {MAX_DECODES:g}"
    )
    return 0 if ratio <= MAX_DECODES and reader_gb <= MAX_GB else 1


def replicate(source: Path, target: Path) -> int:
    """Write a trace until it has `NUM_EVENTS`; each copy begins after the one before."""
    content = msgspec.json.decode(read_bytes(source))
    events = content.pop("traceEvents")
    timed = [event for event in events if event.get("ph") == "X"]
    length = max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed)
    copies = -(-NUM_EVENTS // len(events))
    with target.open("wb") as stream:
        stream.write(msgspec.json.encode(content)[:-1] + b', "traceEvents": [\n')
        for copy in range(copies):
            shifted = [e | {"ts": e["ts"] + copy * length} if "ts" in e else e for e in events]
            lines = b",\n".join(msgspec.json.encode(event) for event in shifted)
            stream.write(lines + (b",\n" if copy + 1 < copies else b"]}"))
    return copies * len(events)


def measure(work: str, path: Path) -> tuple[list[float], float]:
    """Seconds of each repeat after one that is not counted, and the most memory in GB."""
    argv = [sys.executable, "-c", FRAME.format(work=work), str(path)]
    seconds, kilobytes = [], []
    for _ in range(REPEATS + 1):
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        time_s, memory = done.stdout.split()
        seconds.append(float(time_s))
        kilobytes.append(int(memory))
    return seconds[1:], max(kilobytes) / 1e6


def spread(seconds: list[float]) -> str:
    """Middle, least and most, in seconds."""
    low, high = min(seconds), max(seconds)
    return f"{statistics.median(seconds):.2f} s ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    sys.exit(main())
