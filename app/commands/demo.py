"""The demo: one device, then DDP on all, at equal images per device, here and on the page."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from app.commands.running import lines_of, print_plan
from ringside.compare import compare
from ringside.errors import LaunchError
from ringside.hardware import Hardware, read_hardware
from ringside.request import DEFAULT_MICRO_BATCH, RunRequest, resolve
from ringside.run import RunRecord, fold_run
from ringside.rundir import RunDir, runs_root
from ringside.words import say

STORY = ("single", "ddp")
STOP_TIMEOUT_S = 60


def main(*, epochs: int, port: int | None, once: bool) -> int:
    """Run the story; 0 when both runs completed. Ctrl+C stops what was started."""
    from ringside.launch.reconcile import reconcile_all

    root, hardware = runs_root(), read_hardware()
    devices = {"single": 1, "ddp": _num_devices(hardware)}
    print(say("demo.kept_in", root=root))
    reconcile_all(root)
    started: list[RunDir] = []
    with _stopping(started):
        for index, preset in enumerate(STORY):
            run = _start(preset, devices[preset], epochs, hardware, root)
            started.append(run)
            if index == 0:
                # The page starts beside the first epoch, which is warm-up and not counted.
                _serve(root, port)
            for line in lines_of(run):
                print(f"  {line}", flush=True)
            if fold_run(run).state != "completed":
                return 1
        _summary(root, [fold_run(run) for run in started])
        if not once:
            print("\n" + say("demo.stays_open"), flush=True)
            signal.pause()
    return 0


def _start(preset: str, devices: int, epochs: int, hardware: Hardware, root: Path) -> RunDir:
    from ringside.launch.local import start_run

    batch = DEFAULT_MICRO_BATCH[hardware.device] * devices
    request = RunRequest(preset=preset, epochs=epochs, batch=batch, processes=devices)
    spec = resolve(request, hardware)
    print("\n" + say("terminal.figure", label=preset, value=""), end="")
    print_plan(spec)
    run = start_run(spec, hardware, root)
    print("  " + say("demo.run", run=run.id), flush=True)
    return run


def _num_devices(hardware: Hardware) -> int:
    available = hardware.num_devices()
    if available < 2 and not hardware.gpus:
        raise LaunchError(say("demo.one_core"))
    return len(hardware.gpus) or 2


def _serve(root: Path, port: int | None) -> None:
    from app.page import serve

    url = serve(host="127.0.0.1", port=port, runs_root=root, open_browser=False, block=False)
    print("  " + say("demo.page", url=url), flush=True)


@contextlib.contextmanager
def _stopping(started: list[RunDir]) -> Iterator[None]:
    """Whatever ends the demo, no run that it started is left behind."""
    # Ctrl+C must work under `make` in the background too, where it starts out ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        print("\n" + say("demo.stopping"), flush=True)
        raise
    finally:
        for run in started:
            _stop(run)


def _stop(run: RunDir) -> None:
    from ringside.launch.stop import stop_run
    from ringside.words.retelling import retold

    if not fold_run(run).final:
        ended = stop_run(run, timeout_s=STOP_TIMEOUT_S)
        told = retold(ended.reason) if ended else say("demo.not_in_time")
        print(say("following.told", run=run.name, sentence=told), flush=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _summary(root: Path, records: list[RunRecord]) -> None:
    from app.commands.comparing import print_comparison

    print()
    print_comparison(compare(root, records))
