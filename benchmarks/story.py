"""The story's own table: every strategy on this host's GPUs, over three transports, and why.

    python benchmarks/story.py --out DIR --transport nvlink --budget-s 540   # and again, until
    python benchmarks/story.py --out DIR --transport shm --budget-s 540      # it says: complete
    python benchmarks/story.py --out DIR --transport sockets --budget-s 540
    python benchmarks/story.py --out DIR --device cpu --processes 2 --model test_resnet \\
        --image-size 64 --batches 8 --micro-steps 56                           # without GPUs

A cell is a preset at a per-device batch over a transport, or one device alone at a precision. Each
is a run directory that the trainer's own `main` trains, two epochs of made-up images that lie on
the device, so that data hold nothing back: the windows of the second are its clock. All presets of
a transport train in turn in one launch, each in a process group of its own
(`story_ranks.py`; --each gives every run a launch of its own), and no profiler runs there. A last
launch trains a few steps of each with the profiler. The doctor gets the clocks of the first and
the traces of the last; `story_expected.py` says beforehand which verdicts are right.
`ringside.estimate` gets one device's description, what processes cost each other without exchange,
and a sweep of the transport; the replay it makes of DDP learns from a launch in between.

What is measured lies in --out and is not measured again: `cells.jsonl` has a line for each finished
cell, and a call ends before --budget-s seconds are over. --only names beginnings of cells
(`nvlink-256`, `sockets-64-ddp_bf16`). --print measures nothing: predictions and expectations are
made anew, while verdicts stay, for they need the traces. The report goes to DIR/story.md, and on
GPUs to benchmarks/story_GPU_DATE.md. Exit code 1 when a bar is missed, 3 when the call is to be
repeated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
from story_cells import NOT_ON_CPU, PRESETS, STEADY_RATIO, TRANSPORTS, Cell, Job, Line, all_specs
from story_launch import say
from story_report import MISSED, Table, bars, markdown
from story_visit import Visit

from ringside.errors import RingsideError
from ringside.hardware import Hardware, read_hardware
from ringside.rundir import list_run_dirs, write_atomic

BUDGET_S = 540.0
UNFINISHED = 3
ON_GPUS = ("nvlink", "shm", "sockets")
TOLD_ANEW = (
    "Verdicts are those of the visit; predictions and expectations were made anew from its "
    "measurements."
)


def main(argv: list[str] | None = None) -> int:
    """Measure what is not there and fits, then report on all that is."""
    options = parse_arguments(argv)
    hardware = hardware_of(options)
    if options.device == "cuda" and not hardware.gpus:
        sys.exit("This machine has no GPU; --device cpu runs the table on processes over gloo.")
    if options.device == "cpu":
        hardware = without_gpus(hardware)
    options.processes = options.processes or len(hardware.gpus) or 2
    try:
        specs = all_specs(job_of(options), hardware, transports(options), presets(options))
    except RingsideError as error:
        sys.exit(str(error))
    # Launches work in folders of their own.
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    visit = Visit(options, hardware, specs)
    is_whole = options.print or visit.measure()
    lines = visit.told_anew() if options.print else visit.lines.read()
    if not is_whole:
        say("Not complete: call again with the same arguments.")
    report(options, lines, visit.wanted)
    found = bars(Table(lines), visit.wanted)
    if not is_whole:
        return UNFINISHED
    return 1 if any(bar.verdict == MISSED for bar in found) else 0


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Flags of this benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder of all that is measured")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--processes", type=int, default=None, help="GPUs (all), or 2 processes")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256], help="per device")
    parser.add_argument(
        "--micro-steps", type=int, nargs="+", default=[96, 56],
        help="per-device batches of an epoch, for each of --batches: multiples of 8, at least 56",
    )  # fmt: skip
    parser.add_argument("--transport", nargs="+", choices=list(TRANSPORTS), default=None)
    parser.add_argument("--presets", nargs="+", choices=list(PRESETS), default=None)
    parser.add_argument("--only", nargs="+", default=None, help="beginnings of cells' names")
    parser.add_argument("--budget-s", type=float, default=BUDGET_S)
    parser.add_argument("--window-seconds", type=float, default=0.15)
    parser.add_argument("--probe-seconds", type=float, default=1.0, help="of each description")
    parser.add_argument("--sweep-seconds", type=float, default=4.0)
    parser.add_argument("--each", action="store_true", help="a launch for every run")
    parser.add_argument("--again", action="store_true", help="measure what failed once more")
    parser.add_argument("--drop-traces", action="store_true", help="of cells that are finished")
    parser.add_argument("--print", action="store_true", help="measure nothing; predict anew")
    options = parser.parse_args(argv)
    if len(options.micro_steps) != len(options.batches):
        parser.error("--micro-steps needs one number for each of --batches")
    if any(steps < 56 or steps % 8 for steps in options.micro_steps):
        parser.error("--micro-steps must be multiples of 8, and 56 or more")
    return options


def hardware_of(options: argparse.Namespace) -> Hardware:
    """This machine; for a table that is only printed, the one on which it was measured."""
    if options.print:
        for run in list_run_dirs(options.out / "runs"):
            found = run.read(run.hardware, Hardware)
            if found is not None and (found.gpus or options.device == "cpu"):
                return found
    return read_hardware()


def without_gpus(hardware: Hardware) -> Hardware:
    """The same machine as if it had none."""
    return msgspec.structs.replace(hardware, gpus=())


def job_of(options: argparse.Namespace) -> Job:
    """What all cells have in common."""
    steps = dict(zip(options.batches, options.micro_steps, strict=True))
    return Job(options.model, options.image_size, options.processes, steps)


def transports(options: argparse.Namespace) -> list[str]:
    """As asked; all that this kind of device has, else."""
    return options.transport or list(ON_GPUS if options.device == "cuda" else ("gloo",))


def presets(options: argparse.Namespace) -> list[str]:
    """As asked; all that this kind of device can run, else."""
    left_out = NOT_ON_CPU if options.device == "cpu" else ()
    return options.presets or [name for name in PRESETS if name not in left_out]


def report(options: argparse.Namespace, lines: dict[Cell, Line], wanted: Iterable[Cell]) -> None:
    """Print the tables, and keep them in the folder and among the results."""
    text = markdown(Table(lines), wanted, head(options, list(lines.values())))
    print(text, end="")
    write_atomic(options.out / "story.md", text.encode())
    gpu = next((line.device_name for line in lines.values() if line.device_name), "")
    if options.device == "cuda" and gpu:
        name = f"story_{gpu.split()[-1].lower()}_{time.strftime('%Y-%m-%d')}.md"
        write_atomic(Path(__file__).with_name(name), text.encode())


def head(options: argparse.Namespace, lines: list[Line]) -> str:
    """The machine, the versions and the job."""
    first = next((line for line in lines if line.device_name), None)
    versions = first.versions if first else {}
    known = ", ".join(f"{name} {versions[name]}" for name in sorted(versions))
    command = " ".join(word for word in sys.argv[1:] if word != "--print")
    return (
        f"# The story's table, {time.strftime('%Y-%m-%d')}\n\n"
        f"{options.processes} x {first.device_name if first else 'nothing yet'}; {known}. "
        f"{options.model}, {options.image_size} px, made-up images on the device (source "
        "`synthetic`), so that data hold no cell back. Windows of the second epoch without a "
        f"profiler, {options.window_seconds} s each or one step; spread is half their range around "
        f"the median. A cell counts where half of their middle half is within {STEADY_RATIO:.0%} "
        f"of the median.{' ' + TOLD_ANEW if options.print else ''}\n\n"
        f"    python benchmarks/story.py {command}"
    )


if __name__ == "__main__":
    sys.exit(main())
