"""Images per second beside timm's `train.py`, on the same JPEG files, and beside the floor.

    python benchmarks/make_jpegs.py PICTURES --count 16000
    python benchmarks/versus_timm.py PICTURES --timm CHECKOUT --workers 16 4 --precision bf16

CHECKOUT is a clone of timm's repository; its script is run as it is, with its best flags: AMP,
channels_last, pinned memory, no colour jitter, one interpolation, the same crops as ours, and
torch.compile in the mode given (in the default one, or without, where it ends early so). Floor,
ours and timm get the same model, batch, mode, files, crop and worker count. The figure is steady:
all of steps 50 to 250 of one epoch, by the clock of each; the floor's is its median step.
`--copies` hard-links the files under further names, so that one epoch is long enough. Prints a
Markdown table.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from app.commands.running import lines_of
from ringside.events import RunStarted, WindowTimed
from ringside.hardware import Hardware, read_hardware
from ringside.launch.local import start_run
from ringside.launch.stop import stop_run
from ringside.request import RunRequest, resolve
from ringside.run import fold_run
from ringside.rundir import runs_root

FIRST, LAST = 50, 250
STOP_S = 60.0
FLOOR = Path(__file__).with_name("floor.py")
LINE = re.compile(r"Train: 0 \[ *(\d+)/\d+.*?Time: [\d.]+s, +[\d.]+/s +\(([\d.]+)s, +([\d.]+)/s\)")
DTYPES = {"fp16": "float16", "bf16": "bfloat16"}


class Row(NamedTuple):
    """One measurement; `note` says what is not in the other columns."""

    what: str
    workers: str
    samples_per_s: float
    note: str


def main() -> int:
    """Run what was asked for, one after the other, and print the table."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    arguments = parse_arguments()
    hardware = read_hardware()
    pictures = lengthened(arguments.pictures, arguments.copies)
    rows = list(measure(arguments, hardware, pictures))
    floor = max((row.samples_per_s for row in rows if row.what == "floor"), default=None)
    print(f"{len(hardware.gpus)} GPUs here, {arguments.gpus} used; {arguments.precision}, "
          f"compile mode {arguments.compile_mode}, {arguments.batch} images a GPU, "
          f"{hardware.num_cores} cores")  # fmt: skip
    print(
        "| what | workers a GPU | images/s | of the floor | note |\n"
        "| --- | ---: | ---: | ---: | --- |"
    )
    for row in rows:
        share = f"{row.samples_per_s / floor:.0%}" if floor else "-"
        print(f"| {row.what} | {row.workers} | {row.samples_per_s:,.0f} | {share} | {row.note} |")
    return 0


def parse_arguments() -> argparse.Namespace:
    """Flags of this benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--timm", type=Path, help="a checkout of timm's repository")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--batch", type=int, default=256, help="images of one GPU and step")
    parser.add_argument("--precision", choices=DTYPES, default="bf16")
    parser.add_argument("--compile-mode", choices=("default", "reduce-overhead"), default="default")
    parser.add_argument("--workers", type=int, nargs="+", default=[16, 4])
    parser.add_argument("--copies", type=int, default=5)
    parser.add_argument("--decoders", nargs="+", default=["auto"])
    parser.add_argument(
        "--skip", nargs="*", default=[], choices=("floor", "synthetic", "ours", "timm")
    )
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="for ours")
    return parser.parse_args()


def measure(arguments: argparse.Namespace, hardware: Hardware, pictures: Path) -> Iterator[Row]:
    """The rows of the table, as they come."""

    def say(row: Row) -> Row:
        print(row, file=sys.stderr, flush=True)
        return row

    if "floor" not in arguments.skip:
        yield say(floor(arguments, floor_flags(arguments.compile_mode)))
    if "synthetic" not in arguments.skip:
        yield say(ours(arguments, hardware, "synthetic:80000", 0, "cpu"))
    for workers in arguments.workers:
        if "ours" not in arguments.skip:
            for decoder in arguments.decoders:
                yield say(ours(arguments, hardware, str(pictures), workers, decoder))
        if "timm" not in arguments.skip and arguments.timm is not None:
            flags_to_try = timm_flags(arguments.compile_mode)
            tried = (timm(arguments, pictures, workers, flags) for flags in flags_to_try)
            yield from map(say, itertools.islice(filter(None, tried), 1))


def floor_flags(mode: str) -> list[str]:
    """How the floor is told to compile."""
    return ["--compile"] if mode == "default" else ["--compile-mode", mode]


def timm_flags(mode: str) -> list[list[str]]:
    """How timm's script is told to compile, and what to try where it ends early so."""
    in_mode = [] if mode == "default" else [["--torchcompile", "--torchcompile-mode", mode]]
    return [*in_mode, ["--torchcompile"], []]


def floor(arguments: argparse.Namespace, flags: list[str]) -> Row:
    """The floor in a process of its own."""
    launcher = [sys.executable]
    if arguments.gpus > 1:
        launcher += ["-m", "torch.distributed.run", f"--nproc-per-node={arguments.gpus}"]
    argv = [*launcher, str(FLOOR), f"--batch={arguments.batch}"]
    argv += [f"--precision={arguments.precision}", *flags]
    child = subprocess.Popen(
        argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        said, complained = child.communicate()
    finally:
        end_group(child)
    lines = [line for line in said.splitlines() if line.startswith("{")]
    if not lines:
        sys.exit(complained[-2000:])
    found = json.loads(lines[-1])
    note = f"{' '.join(flags)}; {found['memory_bytes'] / 2**30:.1f} GiB"
    return Row("floor", "-", found["samples_per_s"], note)


def ours(
    arguments: argparse.Namespace, hardware: Hardware, data: str, workers: int, decoder: str
) -> Row:
    """A whole run as a person would start it, with the floor's optimizer."""
    overrides = {
        "mixed_precision": arguments.precision, "compile": "true",
        "compile_mode": arguments.compile_mode, "optimizer": "sgd",
        "learning_rate": "0.001", "clip_norm": "0", "warmup_epochs": "0",
        "num_workers": str(workers), "decoder": decoder,
        **dict(pair.split("=", 1) for pair in arguments.set),
    }  # fmt: skip
    request = RunRequest(
        preset="single" if arguments.gpus == 1 else "ddp", data=data, epochs=1, image_size=224,
        batch=arguments.batch * arguments.gpus, overrides=overrides,
        processes=arguments.gpus,
    )  # fmt: skip
    run = start_run(resolve(request, hardware), hardware, runs_root())
    try:
        for line in lines_of(run):
            print(line, file=sys.stderr, flush=True)
    except KeyboardInterrupt:  # It has a supervisor of its own, and would keep the GPU.
        stop_run(run, timeout_s=STOP_S)
        raise
    record = fold_run(run)
    if record.state != "completed":
        sys.exit(f"{run.id}: {record.failure or record.exit}")
    windows = [w for w in events(run.events, WindowTimed) if FIRST < w.step <= LAST]
    started = events(run.events, RunStarted)[0]
    steps = sum(w.num_steps for w in windows)
    spent_ms = sum(w.step_ms * w.num_steps for w in windows)
    rate = 1000 * arguments.batch * arguments.gpus * steps / spent_ms
    waiting = sum(w.data_ms * w.num_steps for w in windows) / spent_ms
    memory = max(w.memory_bytes or 0 for w in windows) / 2**30
    note = f"{steps} steps, {waiting:.0%} of the time waits, {memory:.1f} GiB"
    name = "ours, synthetic" if data.startswith("synthetic") else f"ours, {started.decoder} decode"
    return Row(name, str(workers), rate, note)


def timm(
    arguments: argparse.Namespace, pictures: Path, workers: int, flags: list[str]
) -> Row | None:
    """timm's script, stopped once it has logged step 250; None where it ends before that."""
    launcher = [sys.executable]
    if arguments.gpus > 1:
        launcher += ["-m", "torch.distributed.run", f"--nproc-per-node={arguments.gpus}"]
    argv = [
        *launcher, "train.py", "--data-dir", str(pictures.resolve()), "--model", "resnet50",
        "--num-classes", str(num_folders(pictures)), "--batch-size", str(arguments.batch),
        "--workers", str(workers),
        "--amp", "--amp-dtype", DTYPES[arguments.precision], "--channels-last", "--pin-mem",
        "--color-jitter", "0", "--train-interpolation", "bilinear", "--scale", "0.7", "1",
        "--ratio", "1", "1", "--epochs", "1", "--warmup-epochs", "0", "--lr", "0.001",
        "--log-interval", "50", "--output", "/tmp/timm-output", *flags,
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(arguments.timm.resolve())}
    child = subprocess.Popen(
        argv, cwd=arguments.timm, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    seen: dict[int, tuple[float, float]] = {}
    tail: list[str] = []
    assert child.stdout is not None
    try:
        for line in child.stdout:
            tail = [*tail[-200:], line]
            if found := LINE.search(line):
                print(line.strip(), file=sys.stderr, flush=True)
                seen[int(found[1])] = float(found[2]), float(found[3])
                if LAST in seen:
                    break
    finally:
        end_group(child)
    if LAST not in seen:
        said = "".join(tail)
        print(f"timm's script {' '.join(flags)} ended early:\n{said}", file=sys.stderr, flush=True)
        return None
    # Its means run over steps 0 to n.
    seconds = seen[LAST][0] * (LAST + 1) - seen[FIRST][0] * (FIRST + 1)
    rate = arguments.batch * arguments.gpus * (LAST - FIRST) / seconds
    return Row("timm train.py", str(workers), rate, " ".join(flags) or "not compiled")


def end_group(child: subprocess.Popen[str]) -> None:
    """End what leads a session of its own, and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGTERM)
    child.wait()


def num_folders(pictures: Path) -> int:
    """Folders with pictures: timm's reader takes each for a class."""
    return len({path.parent for path in pictures.rglob("*.jpg")})


def events(path: Path, kind: type) -> list:  # type: ignore[type-arg]
    """All events of one kind."""
    from ringside.events import decode_lines

    return [event for event in decode_lines(path.read_bytes()) if isinstance(event, kind)]


def lengthened(pictures: Path, copies: int) -> Path:
    """A sister folder with every file under `copies` names, and the same labels."""
    if copies == 1:
        return pictures
    folder = pictures.with_name(f"{pictures.name}-x{copies}")
    if folder.exists():
        return folder
    head, *rows = (pictures / "metadata.csv").read_text(encoding="utf-8").splitlines()
    table = [f"split,{head}"]
    for copy in range(copies):
        for number, row in enumerate(rows):
            name, _, labels = row.partition(",")
            target = folder / f"{copy}-{name}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.hardlink_to(pictures / name)
            # A few of the first copy validate: how long that takes is not the question here.
            split = "val" if copy == 0 and number < 512 else "train"
            table.append(f"{split},{copy}-{name},{labels}")
    (folder / "metadata.csv").write_text("\n".join(table) + "\n", encoding="utf-8")
    return folder


if __name__ == "__main__":
    sys.exit(main())
