"""How quickly a large library answers: 500 presets of a team and 1,000 runs.

    python benchmarks/library.py

`ringside presets list` and `ringside list --search` from start to end, first with nothing kept and
then again; and what the page does for a letter that is typed into the search of runs, and for the
cards of a fresh form. All have to stay under half a second once they were asked before. On a shared
machine the time of the processor, which others cannot lengthen as much, stands beside it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringside import events as ev
from ringside.hardware import Hardware
from ringside.presets import built_in_folder
from ringside.request import RunRequest, resolve
from ringside.rundir import RunDir
from ringside.shelf.finding import Query
from ringside.spec import Observed, RunSpec

NUM_PRESETS, NUM_RUNS, REPEATS = 500, 1_000, 5
MAX_S = 0.5
HERE = Hardware(num_cores=4)


def main() -> int:
    """Print the medians; 1 when one that was asked before takes half a second or more."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        os.environ |= {
            "RINGSIDE_RUNS": str(place / "runs"), "RINGSIDE_LIBRARY": str(place / "presets"),
            "XDG_CACHE_HOME": str(place / "cache"), "XDG_DATA_HOME": str(place / "data"),
        }  # fmt: skip
        make_presets(place / "presets")
        make_runs(place / "runs")
        timed("bare Python start", lambda: command("-c", "pass"))
        listed = command_of("presets", "list", "--json")
        first = timed("presets list --json, nothing kept", listed, repeats=1)
        found = [
            timed("presets list", command_of("presets", "list")),
            timed("presets list --json", listed),
            timed("list --search", command_of("list", "--search", "calm ddp 07")),
            timed("page: a letter in the search", search_on_page(place / "runs")),
            timed("page: cards of a fresh form", cards_on_page(place / "runs")),
        ]
    print(f"kept: {first / found[1]:.1f} times as fast")
    return 0 if max(found) < MAX_S else 1


def timed(what: str, action: Callable[[], Any], repeats: int = REPEATS) -> float:
    """The median seconds of an action, printed with the least, the most, and processor time."""
    walls, processor = [], []
    for _ in range(repeats):
        begin, used = time.perf_counter(), processor_s()
        action()
        walls.append(time.perf_counter() - begin)
        processor.append(processor_s() - used)
    middle = statistics.median(walls)
    print(
        f"{what:36s} {middle:6.3f} s ({min(walls):.3f} to {max(walls):.3f}), "
        f"processor {statistics.median(processor):6.3f} s",
        flush=True,
    )
    return middle


def processor_s() -> float:
    """Of this process and of those that it waited for."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def command_of(*words: str) -> Callable[[], None]:
    """`ringside …` as a process of its own."""
    return lambda: command("-m", "app", *words)


def command(*words: str) -> None:
    """Run Python; its output goes nowhere."""
    subprocess.run([sys.executable, *words], check=True, capture_output=True)


def search_on_page(root: Path) -> Callable[[], None]:
    """What a letter costs once the page has shown its list."""
    from app.views.desk import Desk
    from app.views.listing import find

    desk = Desk(root)
    desk.rows()
    return lambda: bool(find(desk.rows(), Query(search="calm ddp 07")).rows) or None


def cards_on_page(root: Path) -> Callable[[], None]:
    """What a page costs that is opened once more."""
    from app.page.draw.train import strategy_cards
    from app.views.form import strategies

    def draw() -> None:
        strategy_cards(strategies(HERE, root=root), "ddp")

    draw()
    return draw


def make_presets(folder: Path) -> None:
    """The built-in presets again and again, under other names."""
    folder.mkdir()
    texts = [path.read_text() for path in sorted((built_in_folder() / "presets").glob("*.yaml"))]
    for number in range(NUM_PRESETS):
        text = texts[number % len(texts)]
        (folder / f"team_{number:03d}.yaml").write_text(text, encoding="utf-8")


def make_runs(root: Path) -> None:
    """Finished runs of three epochs each: one device, and DDP."""
    specs = [
        resolve(RunRequest(preset=name, data="emoji", batch=64), HERE)
        for name in ("single", "ddp", "ddp_accum4", "fsdp")
    ]
    for number in range(NUM_RUNS):
        run = RunDir(root / f"20260101-{number:06d}-calm-otter")
        run.path.mkdir(parents=True)
        # Every tenth is a baseline.
        spec = specs[0] if number % 10 == 0 else specs[1 + number % 3]
        run.write(run.spec, spec)
        run.events.write_bytes(b"".join(ev.encode(event) for event in story(spec)))
        ended = {"state": "completed", "reason": "Completed.", "started": 0.0, "finished": 1.0}
        run.write(run.exit, ended)


def story(spec: RunSpec) -> list[ev.Event]:
    """What a trainer writes."""
    observed = Observed(
        num_processes=spec.num_processes, strategy=spec.strategy, mixed_precision="no",
        backend="gloo", device="cpu", device_name="processor", num_parameters=1,
        channels_last=spec.weights_channels_last, versions={"torch": "2.14.1"},
    )  # fmt: skip
    lines: list[ev.Event] = [
        ev.RunStarted(
            num_train=640, num_val=50, num_classes=10, task="multi_label", data_fingerprint="a",
            data_title="Emoji", steps_per_epoch=10, learning_rate=0.001, observed=observed,
        )
    ]  # fmt: skip
    for epoch in (1, 2, 3):
        lines += [
            ev.EpochTrained(
                epoch=epoch, epoch_time_s=1.0, epoch_time_s_min=1.0, num_samples=640,
                samples_per_s=640.0, num_optimizer_steps=10, train_loss=0.5,
            ),
            ev.Evaluated(
                epoch=epoch, num_evaluated=50, evaluation_time_s=0.1, val_loss=0.5, auc_macro=0.8,
                num_auc_classes=10, num_classes=10, f1_macro=0.4, f1_micro=0.5, map_macro=0.3,
            ),
        ]  # fmt: skip
    return lines


if __name__ == "__main__":
    sys.exit(main())
