"""The same data, seed and global batch on one, two and three processes, for each strategy.

    python benchmarks/parity.py

Prints a Markdown table: samples evaluated, images trained, optimizer steps, collectives per step,
the last learning rate, AUC and F1. Rows of one preset must agree in all counts but that of the
collectives, and in the learning rate; scores differ only by what BatchNorm sees in each device's
share of the batch.
"""

from __future__ import annotations

import sys

import msgspec

from app.commands.running import lines_of
from ringside.hardware import Hardware, read_hardware
from ringside.launch.local import start_run
from ringside.request import RunRequest, resolve
from ringside.run import RunRecord, fold_run
from ringside.rundir import runs_root
from ringside.spec import RunSpec

GLOBAL_BATCH, EPOCHS = 96, 3
PRESETS = ("single", "ddp", "ddp_accum4", "fsdp")
COUNTS = (1, 2, 3)


def main() -> int:
    """Run all pairs; 1 when a run failed or rows of a preset disagree in what must be equal."""
    hardware = read_hardware()
    # More processes than cores are allowed here: nothing is timed.
    roomy = msgspec.structs.replace(hardware, num_cores=max(hardware.num_cores, max(COUNTS)))
    print(
        "| preset | processes | evaluated | trained | steps | collectives a step | last rate |"
        " AUC | F1 macro |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    agrees = True
    for preset in PRESETS:
        counts = (1,) if preset == "single" else COUNTS
        rows = [run(spec_of(preset, count, roomy), hardware) for count in counts]
        agrees &= len({facts(record) for record in rows}) == 1
        for record in rows:
            print(line(record) if record.state == "completed" else f"{record.id}: {record.state}")
    print("\nall counts and rates agree" if agrees else "\nrows of one preset disagree")
    return 0 if agrees else 1


def spec_of(preset: str, count: int, hardware: Hardware) -> RunSpec:
    """The same global batch for every count."""
    return resolve(
        RunRequest(
            preset=preset, data="products:ci", model="test_resnet", epochs=EPOCHS,
            batch=GLOBAL_BATCH, keep_global_batch=True, processes=count,
        ),
        hardware,
    )  # fmt: skip


def run(spec: RunSpec, hardware: Hardware) -> RunRecord:
    """Start, wait, read."""
    started = start_run(spec, hardware, runs_root())
    for text in lines_of(started):
        print(f"{spec.preset} x {spec.num_processes}: {text}", file=sys.stderr, flush=True)
    return fold_run(started)


def facts(record: RunRecord) -> tuple[object, ...]:
    """What may not depend on the number of processes."""
    trained = sum(row.num_samples for row in record.epochs)
    evaluated = tuple(row.num_evaluated for row in record.epochs)
    last = record.windows[-1] if record.windows else None
    return record.state, trained, evaluated, last and last.step, last and last.learning_rate


def line(record: RunRecord) -> str:
    """A row of the table."""
    spec, row, last = record.spec, record.epochs[-1], record.windows[-1]
    assert spec is not None
    cells = [
        spec.preset, spec.num_processes, row.num_evaluated,
        sum(epoch.num_samples for epoch in record.epochs), last.step,
        "–" if row.collectives_per_step is None else f"{row.collectives_per_step:g}",
        f"{last.learning_rate:.3e}", f"{row.auc_macro:.4f}", f"{row.f1_macro:.4f}",
    ]  # fmt: skip
    return f"| {' | '.join(str(cell) for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main())
