"""Every preset that runs on this machine, in turn, at equal images per device.

    python benchmarks/strategies.py --data emoji --epochs 4 --per-device-batch 32

Prints a Markdown table: images/s and speed-up against the baseline of the same precision, measured
in this same session, and the scores beside it. Each figure is the mean over all epochs but the
first; absolute numbers belong to the machine that the heading names.
"""

from __future__ import annotations

import argparse
import sys

from app.commands.running import lines_of
from ringside.compare import ComparedRun, compare
from ringside.errors import RingsideError
from ringside.hardware import Hardware, read_hardware
from ringside.launch.local import start_run
from ringside.presets import Library
from ringside.request import RunRequest, resolve
from ringside.run import RunRecord, fold_run
from ringside.rundir import runs_root
from ringside.spec import RunSpec
from ringside.speedup import baseline_of


def main() -> int:
    """Run baselines and presets; 1 when one of them failed."""
    arguments = parse_arguments()
    hardware = read_hardware()
    specs = list(plan(arguments, hardware))
    records = [run_one(spec, hardware) for spec in specs]
    print_table(records, hardware, arguments)
    return 0 if all(record.state == "completed" for record in records) else 1


def parse_arguments() -> argparse.Namespace:
    """Flags of this benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", default="emoji")
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--per-device-batch", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=None)
    parser.add_argument("--presets", nargs="*", default=None)
    return parser.parse_args()


def plan(arguments: argparse.Namespace, hardware: Hardware) -> list[RunSpec]:
    """Baselines first, one for each precision and compilation that a preset needs."""
    specs: list[RunSpec] = []
    baselines: dict[tuple[str, bool], RunSpec] = {}
    for preset in Library():
        wanted = arguments.presets is None or preset.name in arguments.presets
        if preset.name == "single" or not wanted or hardware.device not in preset.about.devices:
            continue
        request = RunRequest(
            preset=preset.name,
            data=arguments.data,
            model=arguments.model,
            epochs=arguments.epochs,
            batch=arguments.per_device_batch * hardware.num_devices(),
            image_size=arguments.image_size,
        )
        spec = resolve(request, hardware)
        key = (spec.accelerate.mixed_precision, spec.training.compile)
        baselines.setdefault(key, baseline_of(spec))
        specs.append(spec)
    return [*baselines.values(), *specs]


def run_one(spec: RunSpec, hardware: Hardware) -> RunRecord:
    """Start one run and wait for it, with its epochs on standard error."""
    label = f"{spec.preset} ({spec.accelerate.mixed_precision})"
    try:
        run = start_run(spec, hardware, runs_root())
    except RingsideError as error:
        sys.exit(str(error))
    for line in lines_of(run):
        print(f"{label:<26} {line}", file=sys.stderr, flush=True)
    return fold_run(run)


def print_table(
    records: list[RunRecord], hardware: Hardware, arguments: argparse.Namespace
) -> None:
    """The result as Markdown."""
    names = ", ".join(sorted({gpu.name for gpu in hardware.gpus})) or "CPU"
    print(
        f"{hardware.num_devices()} x {names}, {hardware.num_cores} cores, "
        f"torch {hardware.versions.get('torch')}, {arguments.model}, {arguments.data}, "
        f"{arguments.per_device_batch} images per device\n"
    )
    print("| preset | precision | epoch | images/s | speed-up | efficiency | AUC | F1 macro |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    for run in compare(runs_root(), records).runs:
        print(row(run))


def row(run: ComparedRun) -> str:
    """One line of the table; what was not measured is a dash."""
    up = run.speedup
    cells = [
        run.preset,
        "fp32" if run.mixed_precision == "no" else run.mixed_precision,
        "–" if run.epoch_time_s is None else f"{run.epoch_time_s:.2f} s",
        "–" if run.samples_per_s is None else f"{run.samples_per_s:,.0f}",
        "–" if up.value is None else f"{up.value:.2f}x",
        "–" if up.efficiency_ratio is None else f"{100 * up.efficiency_ratio:.0f} %",
        "–" if run.auc_macro is None else f"{run.auc_macro:.3f}",
        "–" if run.f1_macro is None else f"{run.f1_macro:.3f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
