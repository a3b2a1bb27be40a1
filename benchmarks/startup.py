"""How quickly Ringside answers, as ratios against floors measured in the same session.

    python benchmarks/startup.py

`ringside list` with 200 runs of 2,000 events each against a bare Python start (at most 8), and the
page: seconds from the command to the first answered request, warm (under 6).
"""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from ringside import events as ev
from ringside.hardware import Hardware
from ringside.request import RunRequest, resolve
from ringside.rundir import RunDir

NUM_RUNS, NUM_EVENTS, REPEATS = 200, 2_000, 15
MAX_STARTS, MAX_PAGE_S = 8, 6


def main() -> int:
    """Print both ratios; 1 when one is over its bar."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        make_runs(root)
        environment = {**os.environ, "RINGSIDE_RUNS": str(root)}
        bare, listed = paired(environment)
        page = statistics.median(page_ready_s(environment) for _ in range(3))
    ratio = listed / bare
    print(f"bare Python start          {1000 * bare:7.1f} ms (median of {REPEATS})")
    print(f"ringside list, {NUM_RUNS} runs    {1000 * listed:7.1f} ms  = {ratio:.1f} bare starts")
    print(f"page ready                 {page:7.1f} s (median of 3, warm)")
    return 0 if ratio <= MAX_STARTS and page < MAX_PAGE_S else 1


def make_runs(root: Path) -> None:
    """Finished runs with window events, written once and copied."""
    spec = resolve(RunRequest(preset="single"), Hardware(num_cores=2))
    line = ev.encode(window(1))
    for number in range(NUM_RUNS):
        run = RunDir(root / f"20260101-{number // 60:04d}{number % 60:02d}-calm-otter")
        run.path.mkdir(parents=True)
        run.write(run.spec, spec)
        ended = {"state": "completed", "reason": "Completed.", "started": 0.0, "finished": 1.0}
        run.write(run.exit, ended)
        run.events.write_bytes(line * NUM_EVENTS)


def window(step: int) -> ev.WindowTimed:
    """A typical event."""
    return ev.WindowTimed(
        t=1_790_000_000.5, epoch=1, step=step, num_steps=1, samples_per_s=1234.5, train_loss=0.25,
        learning_rate=0.001, step_ms=25.5, data_ms=0.5, forward_ms=8.25, backward_ms=14.5,
        optimizer_ms=2.25, step_ms_min=25.25, data_ms_min=0.25,
    )  # fmt: skip


def paired(environment: dict[str, str]) -> tuple[float, float]:
    """Medians of a bare start and of the list, taken in turn because machines drift."""
    command = Path(sys.executable).with_name("ringside")
    bare, listed = [], []
    for _ in range(REPEATS + 1):
        bare.append(seconds([sys.executable, "-c", "pass"], environment))
        listed.append(seconds([str(command), "list", "--limit", "200"], environment))
    return statistics.median(bare[1:]), statistics.median(listed[1:])


def seconds(argv: list[str], environment: dict[str, str]) -> float:
    """Wall time of one whole process."""
    begin = time.perf_counter()
    quiet = subprocess.DEVNULL
    subprocess.run(argv, env=environment, check=True, stdout=quiet, stderr=quiet)
    return time.perf_counter() - begin


def page_ready_s(environment: dict[str, str]) -> float:
    """From the command to the first page answered."""
    command = [str(Path(sys.executable).with_name("ringside")), "ui"]
    begin = time.perf_counter()
    with subprocess.Popen(
        command, env={**environment, "PYTHONUNBUFFERED": "1"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            found = next(m for line in server.stdout if (m := re.search(r"http://\S+", line)))
            urllib.request.urlopen(found[0], timeout=20).read()
            return time.perf_counter() - begin
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(20)


if __name__ == "__main__":
    sys.exit(main())
