"""What the page of a run costs: an idle tick, a very long run, fifty runs, twenty viewers.

    python benchmarks/page.py                 # all of it; the last part trains for six minutes
    python benchmarks/page.py --without-training

Requests go over real HTTP to a server in a process of its own, as a browser sends them. The last
part trains and lets twenty viewers of that run come and go in turns, so that both arms see the same
run and the same machine: one process, which leaves a core to the server on two cores, and two.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from app.views.desk import FRESH_S
from app.views.pace import PERIOD_S
from ringside import events as ev
from ringside.records import write_exit, write_owner
from ringside.run import RunReader
from ringside.rundir import RunDir
from ringside.spec import AccelerateSettings, DataSpec, Observed, RunSpec, TrainingSettings

SERVE = (
    "import sys, pathlib; from app.page import serve; "
    "serve(runs_root=pathlib.Path(sys.argv[1]), port=int(sys.argv[2]))"
)
PORT = 17960
LONG_STEPS = 100_000
NUM_RUNS = 50
NUM_VIEWERS = 20
REPEATS, NUM_NEWS = 100, 40
BLOCK_S, NUM_BLOCKS = 15.0, 10
NUM_PAINTINGS = 10
PAINTED = {"tiles": ".rs-tile", "curves": "#curves svg path"}
WHEN_PAINTED = "what => document.querySelector(what) && performance.now()"
"""Milliseconds since the navigation began, asked in each frame."""

SKIP_S = 4.0
"""At the beginning of a block: viewers come and go."""


def main() -> None:
    """Print the lines of the result file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--without-training", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "runs"
        root.mkdir()
        long, live = _make_runs(root)
        with _served(root) as (url, pid):
            page = Page(url, pid)
            both = {"of 12 windows": live, f"of {LONG_STEPS:,} windows": long}
            for name, run in both.items():
                _measure_run(page, run, name)
            _measure_painting(url, both)
        if not given.without_training:
            for preset in ("single", "ddp"):
                _measure_viewers(Path(folder) / preset, preset)


class Page:
    """A browser without a screen: it sends what Gradio's own code sends."""

    def __init__(self, url: str, pid: int) -> None:
        self.server = psutil.Process(pid)
        self.client = httpx.Client(base_url=url, timeout=60)
        self.session = secrets.token_hex(6)
        config = self.client.get("/config").json()
        self.events = {event["api_name"]: event for event in config["dependencies"]}
        self.ids = {p["id"]: p["props"].get("elem_id") or "" for p in config["components"]}

    def ask(self, name: str, **values: Any) -> tuple[dict[str, Any], httpx.Response]:
        """Call an event; what it answers by element id, and the response."""
        event = self.events[name]
        data = [values.get(self.ids[part].replace("-", "_")) for part in event["inputs"]]
        trigger = event["targets"][0][0]
        body = {
            "data": data, "event_data": None, "fn_index": event["id"], "trigger_id": trigger,
            "session_hash": self.session,
        }  # fmt: skip
        answer = self.client.post("/gradio_api/run/predict", json=body)
        answer.raise_for_status()
        outputs = (self.ids[part] for part in event["outputs"])
        return dict(zip(outputs, answer.json()["data"], strict=True)), answer

    def server_s(self) -> float:
        """Processor time of the server so far."""
        times = self.server.cpu_times()
        return float(times.user + times.system)

    def values(self, run: RunDir, seen: str) -> dict[str, Any]:
        """What the fields of a page hold that shows `run`."""
        return {
            "run_id": run.id, "seen": seen, "field_log": "console", "field_search": "",
            "field_state": "", "field_of_preset": "", "field_tag": "", "field_sort": "newest",
            "field_archived": False, "trial_id": "",
        }  # fmt: skip


def _measure_run(page: Page, run: RunDir, name: str) -> None:
    values = page.values(run, "")
    began, before_s = time.perf_counter(), page.server_s()
    everything, answer = page.ask("poll_run", **values)
    first_s = time.perf_counter() - began
    lines = everything["curves"]["lines"]
    most = max(len(line["points"]) for line in lines.values())
    print(f"run {name}, {NUM_RUNS} runs in the list")
    work_ms = (page.server_s() - before_s) * 1000
    print(f"  all, first viewer: {first_s * 1000:.0f} ms, of which {work_ms:.0f} ms were computing")
    print(f"  all, sent: {_sent(answer) / 1000:.0f} kB")
    print(f"  points of a curve: at most {most}")
    values["seen"] = everything["seen"]
    idle = [page.ask("tick_run", **values)[1] for _ in range(REPEATS)]
    print(f"  idle tick: {len(idle[0].request.content)} B asked, {len(idle[0].content)} B answered")
    print(f"  idle tick, handler: {_spread([a.json()['duration'] * 1000 for a in idle])}")
    busy, polls, sizes = [], [], []
    for number in range(NUM_NEWS):
        _append(run, number)
        time.sleep(FRESH_S)  # what was read serves all viewers for so long
        busy.append(page.ask("tick_run", **values)[1].json()["duration"] * 1000)
        found, answer = page.ask("poll_run", **values)
        polls.append(answer.json()["duration"] * 1000)
        sizes.append(_sent(answer))
        values["seen"] = found["seen"]
    print(f"  tick with a new window, handler: {_spread(busy)}")
    print(f"  and its answer, handler: {_spread(polls)}; {statistics.median(sizes):.0f} B sent")


def _measure_painting(url: str, runs: dict[str, RunDir]) -> None:
    """From asking for the page in a browser to tiles, and to curves, that are drawn."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        print("no browser: drawing was not measured")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        tab = browser.new_context().new_page()
        for name, run in runs.items():
            shown: dict[str, list[float]] = {"tiles": [], "curves": []}
            for _ in range(1 + NUM_PAINTINGS):
                tab.goto(f"{url}/runs?run={run.id}", wait_until="commit")
                for what, selector in PAINTED.items():
                    found = tab.wait_for_function(WHEN_PAINTED, arg=selector, timeout=60_000)
                    shown[what].append(found.json_value())
            # The first time the browser also fetches and compiles Gradio.
            for what, times in shown.items():
                print(f"run {name}, {what} drawn: {_spread(times[1:])}; cold {times[0]:.0f} ms")
        browser.close()


def _measure_viewers(root: Path, preset: str) -> None:
    """Step times of one run while twenty viewers poll it, and while nobody does, in turns."""
    root.mkdir()
    environment = os.environ | {"RINGSIDE_RUNS": str(root)}
    argv = ["run", preset, "--model", "test_resnet", "--data", "products:ci", "--epochs", "5000"]
    subprocess.run([sys.executable, "-m", "app", *argv], env=environment, check=True)
    run = next(RunDir(path) for path in root.iterdir() if (path / "spec.json").exists())
    try:
        with _served(root) as (url, pid):
            _wait(lambda: len(_windows(run)) > 20, 120)
            blocks: dict[bool, list[float]] = {False: [], True: []}
            for number in range(NUM_BLOCKS):
                watched = number % 2 == 1
                begin, before_s = time.time() + SKIP_S, psutil.Process(pid).cpu_times().user
                with _viewers(url, pid, run, NUM_VIEWERS if watched else 0) as polls:
                    time.sleep(BLOCK_S)
                used_s = psutil.Process(pid).cpu_times().user - before_s
                found = [w.step_ms for w in _windows(run) if begin < w.t <= time.time()]
                blocks[watched].append(statistics.median(found))
                word = f"{len(polls)} polls" if watched else "nobody"
                load = f"server {100 * used_s / BLOCK_S:.0f} % of a core"
                print(f"  block {number + 1}, {word}: {_spread(found)} a step, {load}")
    finally:
        subprocess.run(
            [sys.executable, "-m", "app", "stop", run.name], env=environment, check=False
        )
    alone, seen = (statistics.median(blocks[key]) for key in (False, True))
    print(f"{NUM_VIEWERS} viewers of one run: {seen / alone:.3f} of the step time without")
    print(f"  medians of blocks without {_spread(blocks[False])}, with {_spread(blocks[True])}")
    ratios = [b / a for a, b in zip(blocks[False], blocks[True], strict=True)]
    print(f"  pairs of neighbours: {', '.join(f'{ratio:.2f}' for ratio in ratios)}")


@contextmanager
def _viewers(url: str, pid: int, run: RunDir, number: int) -> Iterator[list[float]]:
    """So many viewers, each of which ticks as often as it is told and fetches what is new.

    Browsers compute elsewhere, so these give way to everything else on this machine.
    """
    stop, polls = threading.Event(), []

    def view(place: int) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        page = Page(url, pid)
        values, period_s = page.values(run, ""), PERIOD_S
        stop.wait(place / number)
        while not stop.is_set():
            began = time.perf_counter()
            pulse, timer = page.ask("tick_run", **values)[1].json()["data"]
            period_s = timer.get("value", period_s)
            if isinstance(pulse, str):
                found, _ = page.ask("poll_run", **values)
                values["seen"] = found["seen"] if isinstance(found["seen"], str) else values["seen"]
            polls.append(time.perf_counter() - began)
            stop.wait(max(0.0, period_s - (time.perf_counter() - began)))

    threads = [threading.Thread(target=view, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    yield polls
    stop.set()
    for thread in threads:
        thread.join()


@contextmanager
def _served(root: Path) -> Iterator[tuple[str, int]]:
    url = f"http://127.0.0.1:{PORT}"
    argv = [sys.executable, "-c", SERVE, str(root), str(PORT)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait(lambda: _answers(url), 90)
            yield url, server.pid
        finally:
            server.terminate()


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=20).status_code == 200
    except httpx.TransportError:
        return False


def _wait(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.3)


def _windows(run: RunDir) -> list[ev.WindowTimed]:
    reader = RunReader(run)
    reader.poll()
    return reader.record.windows


def _make_runs(root: Path) -> tuple[RunDir, RunDir]:
    """Fifty runs: a very long one under way, one that has just begun, the others over."""
    made = [_make_run(root, number) for number in range(NUM_RUNS)]
    for run in made[2:]:
        write_exit(run, state="completed", reason="Completed.", return_code=0)
    long, live = made[:2]
    with long.events.open("ab") as stream:
        stream.write(b"".join(ev.encode(_window(step)) for step in range(1, LONG_STEPS + 1)))
    return long, live


def _make_run(root: Path, number: int) -> RunDir:
    run = RunDir(
        root / f"20260102-0304{number:02d}-run-{chr(97 + number // 26)}{chr(97 + number % 26)}"
    )
    for folder in (run.path, run.ranks, run.requests, run.logs, run.checkpoints):
        folder.mkdir(parents=True)
    spec = RunSpec(
        preset="ddp", accelerate=AccelerateSettings(distributed_type="MULTI_GPU", num_processes=2),
        training=TrainingSettings(), data=DataSpec(source="products", profile="ci"),
        model="resnet10t", epochs=3, global_batch=64, num_processes=2, device="cpu",
    )  # fmt: skip
    run.write(run.spec, spec)
    write_owner(run, "supervisor")
    observed = Observed(
        num_processes=2, strategy="ddp", mixed_precision="no", backend="gloo", device="cpu",
        device_name="cpu", num_parameters=10,
    )  # fmt: skip
    started = ev.RunStarted(
        t=time.time(), observed=observed, num_train=640, num_val=320, num_classes=16,
        task="multi_label", data_fingerprint="same", data_title="Products", steps_per_epoch=10**6,
        learning_rate=0.001,
    )  # fmt: skip
    windows = [] if number == 0 else [_window(step) for step in range(1, 13)]
    run.events.write_bytes(b"".join(map(ev.encode, [started, *windows])))
    run.console.write_text("a line of the log\n" * 100)
    return run


def _window(step: int) -> ev.WindowTimed:
    return ev.WindowTimed(
        t=time.time(), epoch=1, step=step, num_steps=1, samples_per_s=640.0 + step % 7,
        train_loss=1.0 / step + step % 5 / 100, learning_rate=0.001, step_ms=100.0 + step % 11,
        data_ms=5.0, forward_ms=25.0, backward_ms=50.0, optimizer_ms=15.0, step_ms_min=99.0,
        data_ms_min=4.0,
    )  # fmt: skip


def _append(run: RunDir, number: int) -> None:
    with run.events.open("ab") as stream:
        stream.write(ev.encode(_window(LONG_STEPS + number + 1)))


def _sent(answer: httpx.Response) -> int:
    """Bytes of the body as they went over the wire, compressed."""
    return int(answer.headers.get("content-length") or len(answer.content))


def _spread(values: list[float]) -> str:
    """`5.1 ms (4.8 to 6.0)`: the middle, and the 10th and 90th percentile."""
    low, high = (
        statistics.quantiles(values, n=10)[::8] if len(values) > 2 else (values[0], values[-1])
    )
    return f"{statistics.median(values):.2f} ms ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    sys.exit(main())
