"""What telemetry costs, as ratios against floors measured in the same session.

    python benchmarks/events.py

1. Writing events and timing steps, as a share of a real training step (under 1 %).
2. Reading a run of 100,000 events against a bare msgspec decode of its file (at most 3 times).
3. A poll with nothing new (under 2 ms).
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import timm
import torch
from startup import window

from ringside import events as ev
from ringside.hardware import Hardware
from ringside.request import RunRequest, resolve
from ringside.run import RunReader
from ringside.rundir import create_run_dir
from training.control import Control
from training.timing import StepTimer

NUM_EVENTS = 100_000
MAX_SHARE, MAX_DECODES, MAX_POLL_MS = 0.01, 3.0, 2.0


def main() -> int:
    """Print the three figures; 1 when one is over its bar."""
    share = telemetry_share()
    decodes, poll_ms = reading()
    print(f"telemetry      {100 * share:.3f} % of a step")
    print(f"reading        {decodes:.2f} bare decodes of {NUM_EVENTS:,} events")
    print(f"idle poll      {poll_ms:.3f} ms")
    return 0 if share < MAX_SHARE and decodes <= MAX_DECODES and poll_ms < MAX_POLL_MS else 1


def telemetry_share() -> float:
    """Cost of one step's marks and one window's event, over a ResNet-50 step at 32 px, batch 32."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.set_num_threads(1)
    model = timm.create_model("resnet50", num_classes=53).to(device)
    images = torch.randn(32, 3, 32, 32, device=device)

    def step() -> None:
        model(images).float().square().mean().backward()
        if device.type == "cuda":
            torch.cuda.synchronize()

    step_s = median_s(step, 5)
    timer, control = StepTimer(device), Control(0, 1)
    loss = torch.zeros((), device=device)
    with tempfile.TemporaryDirectory() as folder:
        writer = ev.EventWriter(Path(folder) / "events.jsonl")

        def telemetry() -> None:
            timer.waited(0.001)
            timer.start()
            for part in ("forward", "backward"):
                timer.end(part)
            timer.loss(loss)
            timer.start()
            timer.end("optimizer")
            timer.step()
            # Once a step here; a run does the rest only once a second.
            control.exchange([1, 25.0, *timer.drain()])
            writer.write(window(1))

        telemetry_s = median_s(telemetry, 200)
    return telemetry_s / step_s


def reading() -> tuple[float, float]:
    """(time to read a whole run ÷ time of a bare decode, milliseconds of an idle poll)."""
    with tempfile.TemporaryDirectory() as folder:
        run = create_run_dir(Path(folder))
        run.write(run.spec, resolve(RunRequest(preset="single"), Hardware(num_cores=2)))
        with run.events.open("wb") as stream:
            for step in range(NUM_EVENTS):
                stream.write(ev.encode(window(step)))
        decoder = msgspec.json.Decoder(ev.WindowTimed)

        def bare() -> None:
            decoder.decode_lines(run.events.read_bytes())

        ratios = []
        for _ in range(5):
            floor = median_s(bare, 1)
            reader = RunReader(run)
            ratios.append(median_s(reader.poll, 1) / floor)
        return statistics.median(ratios), 1000 * median_s(reader.poll, 200)


def median_s(work: Callable[[], object], repeats: int) -> float:
    """Median seconds of a call, after one that is not counted when there are several."""
    times = []
    for _ in range(repeats + (repeats > 1)):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:] if repeats > 1 else times)


if __name__ == "__main__":
    sys.exit(main())
