"""Commands that start, follow and stop runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from ringside.errors import RunDirError
from ringside.hardware import Hardware, read_hardware
from ringside.request import RunRequest, continue_run, resolve
from ringside.run import EpochRow, RunReader, RunRecord, fold_run, require_spec, running_beside
from ringside.rundir import RunDir, find_run, runs_root
from ringside.sentences import beside_note, plan_notes, plan_sentence
from ringside.spec import RunSpec

POLL_S = 0.5


def show_plan(request: RunRequest) -> None:
    """Print what would run, without touching the disk."""
    from pathlib import Path

    from ringside import presets, yaml_text
    from ringside.launch.plan import make_plan, quoted_command

    spec = resolve(request, read_hardware())
    print_plan(spec)
    for key, source in spec.sources.items():
        print(f"  {key} = {_value(spec, key)}  ({source})")
    print("\n# accelerate.yaml")
    print(yaml_text.dump(presets.accelerate_config(spec.accelerate, spec.num_processes)))
    print(quoted_command(make_plan(spec, RunDir(Path("RUN")))))


def print_plan(spec: RunSpec) -> None:
    """The plan sentence and its notes."""
    print(plan_sentence(spec))
    for note in plan_notes(spec):
        print(f"  {note}")


def start(request: RunRequest, *, follow: bool, skip_bad: bool = False) -> int:
    """Start a run; 0, or with `follow` 1 when it failed.

    With `skip_bad` the data are checked first, and the names of bad files become part of the spec.
    """
    hardware = read_hardware()
    spec = resolve(request, hardware)
    if skip_bad:
        spec = without_bad_files(spec)
    return start_spec(spec, hardware, follow=follow)


def without_bad_files(spec: RunSpec) -> RunSpec:
    """The spec with every file left out that does not decode; says which."""
    from app.views import check
    from ringside.data import check_data

    report = check_data(spec.data)
    for bad in report.bad:
        print(f"left out: {bad.file}: {bad.reason}")
    return check.without_bad_files(spec, report)


def resume(run_id: str, *, epochs: int | None, processes: int | None, follow: bool) -> int:
    """Continue a run from its last checkpoint; 0, or with `follow` 1 when it failed."""
    run, hardware = find_run(runs_root(), run_id), read_hardware()
    if not fold_run(run).final:
        raise RunDirError(f"{run.name} is not over yet; stop it first.")
    spec = continue_run(run, hardware, epochs=epochs, processes=processes)
    return start_spec(spec, hardware, follow=follow)


def start_spec(spec: RunSpec, hardware: Hardware, *, follow: bool) -> int:
    """Start what was resolved, and follow it when asked to."""
    from ringside.launch.local import start_run

    print_plan(spec)
    if names := running_beside(runs_root(), spec, hardware.num_cores):
        print(f"  {beside_note(names)}")
    run = start_run(spec, hardware, runs_root())
    print(f"run {run.id} in {run.path}")
    if not follow:
        print(f"follow it: ringside watch {run.name}")
        return 0
    return follow_run(run)


def watch(run_id: str) -> int:
    """Follow a run by name; 1 when it failed or is lost."""
    run = find_run(runs_root(), run_id)
    require_spec(fold_run(run))
    print(f"run {run.id} in {run.path}", file=sys.stderr)
    return follow_run(run)


def follow_run(run: RunDir) -> int:
    """Print phases and epochs as they come; leaving with Ctrl+C does not touch the run."""
    try:
        for line in lines_of(run):
            print(line, flush=True)
    except KeyboardInterrupt:
        print(f"\n{run.name} goes on; `ringside stop {run.name}` stops it.", file=sys.stderr)
        return 130
    record = fold_run(run)
    return 1 if record.state in ("failed", "lost") else 0


def lines_of(run: RunDir) -> Iterator[str]:
    """Lines about a run until it ends."""
    reader = RunReader(run)
    phase: tuple[str | None, int | None] = (None, None)
    shown = 0
    while True:
        reader.poll()
        record = reader.record
        if record.phase and (record.phase, record.epoch) != phase and record.phase != "save":
            phase = (record.phase, record.epoch)
            if record.phase in ("data", "setup"):
                yield f"{record.phase} ..."
        complete = [row for row in record.epochs if row.num_evaluated is not None or record.final]
        for row in complete[shown:]:
            yield epoch_line(row, record)
        shown = len(complete)
        if record.final:
            yield ending(record)
            return
        time.sleep(POLL_S)


def epoch_line(row: EpochRow, record: RunRecord) -> str:
    """One epoch in one line."""
    from app.commands.tables import number, seconds

    total = record.spec.epochs if record.spec else "?"
    return (
        f"epoch {row.epoch} of {total}  {seconds(row.epoch_time_s)}"
        f"  {row.samples_per_s:,.0f} images/s"
        f"  loss {number(row.train_loss, '.4f')}  AUC {number(row.auc_macro)}"
        f"  F1 {number(row.f1_macro)}"
    )


def ending(record: RunRecord) -> str:
    """How a run ended."""
    from app.views.ending import failure_lines

    if record.exit is not None:
        return "\n".join((f"{record.state}: {record.exit.reason}", *failure_lines(record)))
    if record.failure is not None:
        return f"{record.state}: rank {record.failure.rank}: {record.failure.sentence}"
    return record.state


def stop(run_id: str, *, after_epoch: bool) -> int:
    """Stop a run; waits until nothing of it is left."""
    from ringside.launch.stop import stop_run

    run = find_run(runs_root(), run_id)
    record = fold_run(run)
    require_spec(record)
    if record.final:
        print(f"{run.name} has ended already: {record.state}.")
        return 0
    if after_epoch:
        run.request("stop-after-epoch")
        print(f"{run.name} will stop after this epoch.")
        return 0
    ended = stop_run(run, timeout_s=90)
    print(f"{run.name}: {ended.reason if ended else 'still stopping; ask `ringside show`.'}")
    return 0 if ended else 1


def _value(spec: RunSpec, key: str) -> object:
    value: object = spec
    for name in key.split("."):
        value = getattr(value, name)
    return value.label if hasattr(value, "label") else value
