"""Commands that start, follow and stop runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ringside.errors import RunDirError, SpecError
from ringside.events import Evaluated, Event, PhaseStarted, RunStarted, Warned, decode_lines
from ringside.hardware import Hardware, read_hardware
from ringside.request import RunRequest, resolve
from ringside.run import (
    EpochRow,
    RunReader,
    RunRecord,
    fold_events,
    fold_run,
    require_spec,
)
from ringside.rundir import RunDir, find_run, read_new_lines, runs_root
from ringside.sentences import plan_notes, plan_sentence
from ringside.spec import RunSpec
from ringside.words import say

POLL_S = 0.5


def show_plan(request: RunRequest) -> None:
    """Print what would run, without touching the disk."""
    from ringside import presets, yaml_text
    from ringside.launch.plan import make_plan, quoted_command

    spec = resolve(request, read_hardware())
    print_plan(spec)
    for key, source in spec.sources.items():
        print("  " + _setting(key, _value(spec, key), source))
    for name, value in spec.environment.items():
        key = f"environment.{name}"
        source = "flag" if key in request.overrides else "preset"
        print("  " + _setting(key, value, source))
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
        print(say("terminal.left_out", what=bad.file, why=bad.reason))
    return check.without_bad_files(spec, report)


def parse_gpus(text: str | None) -> tuple[int, ...] | None:
    """The numbers of `2,3`; SpecError for anything else."""
    if text is None:
        return None
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and len(word) < 5 for word in words):
        raise SpecError(f"--gpus takes numbers with commas between them, such as 2,3, not {text}.")
    return tuple(map(int, words))


class Changes(NamedTuple):
    """In what a run that goes on differs from the one before; see `continue_run`."""

    epochs: int | None = None
    processes: int | None = None
    gpus: tuple[int, ...] | None = None
    queue: bool = False
    beside: bool = False


def resume(run_id: str, changes: Changes, *, follow: bool) -> int:
    """Continue a run from its last checkpoint; 0, or with `follow` 1 when it failed."""
    from app.resuming import spec_to_resume

    run, hardware = find_run(runs_root(), run_id), read_hardware()
    spec = spec_to_resume(run, hardware, **changes._asdict())
    return start_spec(spec, hardware, follow=follow)


def start_spec(spec: RunSpec, hardware: Hardware, *, follow: bool) -> int:
    """Start what was resolved, and follow it when asked to."""
    from app.commands.preflight import before_start
    from app.views.queue import place_of, place_sentence
    from ringside.launch.local import start_run
    from ringside.preflight import keep

    print_plan(spec)
    kept = before_start(spec, hardware)
    run = start_run(spec, hardware, runs_root())
    keep(run, kept)
    keep_prediction(run, spec, hardware)
    print(say("following.run", run=run.id, path=run.path))
    if place := place_of(fold_run(run)):
        print(f"  {place_sentence(place)}")
    if not follow:
        print(say("following.hint", run=run.name))
        return 0
    return follow_run(run)


def keep_prediction(run: RunDir, spec: RunSpec, hardware: Hardware) -> None:
    """Store what this machine's measurements predict, and say so; nothing where there are none."""
    from ringside.estimate import store_estimate

    found = store_estimate(run, spec, hardware, runs_root())
    if found is not None and found.step_ms is not None:
        told = say(
            "following.predicted", step_ms=found.step_ms, low=found.step_ms_low,
            high=found.step_ms_high, rate=found.samples_per_s,
        )  # fmt: skip
        print(f"  {told}")


def watch(run_id: str) -> int:
    """Follow a run by name; 1 when it failed or is lost."""
    run = find_run(runs_root(), run_id)
    require_spec(fold_run(run))
    print(say("following.run", run=run.id, path=run.path), file=sys.stderr)
    return follow_run(run)


def follow_run(run: RunDir) -> int:
    """Print phases and epochs as they come, of another try of the run too.

    Leaving with Ctrl+C does not touch the run. 1 when it, or its other try, failed.
    """
    try:
        for line in lines_of(run):
            print(line, flush=True)
    except KeyboardInterrupt:
        print("\n" + say("following.goes_on", run=run.name), file=sys.stderr)
        return 130
    record = fold_run(run)
    if record.exit is not None and record.exit.retried_as is not None:
        from app.views.queue import try_sentence

        told = try_sentence("retried_as", record.exit.retried_as)
        print(say("following.told", run=run.name, sentence=told), flush=True)
        return follow_run(find_run(run.path.parent, record.exit.retried_as))
    return 1 if record.state in ("failed", "lost") else 0


def lines_of(run: RunDir) -> Iterator[str]:
    """Lines about a run until it ends, in the order of its events however late one looks."""
    reader = RunReader(run)
    told = RunRecord(id=run.id, name=run.name, path=str(run.path))
    offset = num_epochs = 0
    while True:
        reader.poll()
        told.spec = reader.record.spec
        data, offset = read_new_lines(run.events, offset)
        for event in decode_lines(data):
            fold_events(told, [event])
            yield from _lines_of_event(event, told)
            if isinstance(event, Evaluated):
                num_epochs = len(told.epochs)
        if reader.record.final:
            yield from (epoch_line(row, told) for row in told.epochs[num_epochs:])
            yield ending(reader.record)
            return
        if not run.path.is_dir():
            raise RunDirError(say("following.gone", run=run.name, path=run.path))
        time.sleep(POLL_S)


def _lines_of_event(event: Event, told: RunRecord) -> Iterator[str]:
    """What a person wants to read of one event; `told` is the record up to it."""
    from app.views.counts import left_out_lines
    from ringside.words.retelling import retold

    if isinstance(event, PhaseStarted) and event.phase in ("data", "setup", "compile"):
        yield say("following.phase", phase=say(f"phase.{event.phase}"))
    elif isinstance(event, RunStarted):
        yield from (say("terminal.note", sentence=line) for line in left_out_lines(told))
    elif isinstance(event, Warned):
        yield say("terminal.note", sentence=retold(event.message))
    elif isinstance(event, Evaluated):
        yield from (epoch_line(row, told) for row in told.epochs if row.epoch == event.epoch)


def epoch_line(row: EpochRow, record: RunRecord) -> str:
    """One epoch in one line."""
    from app.commands.tables import number, seconds
    from app.views.counts import over_classes

    auc, over = number(row.auc_macro), over_classes(row)
    return say(
        "following.epoch",
        epoch=row.epoch,
        total=record.spec.epochs if record.spec else "?",
        time=seconds(row.whole_time_s),
        rate=row.samples_per_s,
        loss=number(row.train_loss, ".4f"),
        auc=say("following.auc_over", auc=auc, over=over) if over else auc,
        f1=number(row.f1_macro),
    )


def ending(record: RunRecord) -> str:
    """How a run ended; a reason that begins with the state says it alone."""
    from app.views.ending import failure_lines
    from app.views.watching import remedy_lines
    from ringside.launch.reconcile import orphan_sentence
    from ringside.words.retelling import retold

    state = say(f"state.{record.state}")
    if record.exit is not None:
        reason = record.exit.reason
        repeated = reason.lower().startswith(record.state)
        first = retold(reason)
        first = first if repeated else say("following.ended", state=state, sentence=first)
        return "\n".join((first, *failure_lines(record), *remedy_lines(record)))
    if record.failure is not None:
        failed = retold(record.failure.sentence)
        told = say("terminal.rank_said", rank=record.failure.rank, sentence=failed)
    else:
        told = orphan_sentence(RunDir(Path(record.path))) or say("run.owner_gone")
    first = say("following.ended", state=state, sentence=told)
    return "\n".join((first, *failure_lines(record)))


def stop(run_id: str, *, after_epoch: bool) -> int:
    """Stop a run; waits until nothing of it is left, also of one whose supervisor is gone."""
    from ringside.asking import ask_to_stop_after_epoch
    from ringside.identity import run_processes
    from ringside.launch.stop import stop_run
    from ringside.words.retelling import retold

    run = find_run(runs_root(), run_id)
    record = fold_run(run)
    require_spec(record)
    if record.exit is not None:
        print(say("following.ended_already", run=run.name, state=say(f"state.{record.state}")))
        return 0
    if after_epoch and record.state != "queued" and not record.final:
        ask_to_stop_after_epoch(run)
        print(say("following.stops_after_epoch", run=run.name))
        return 0
    ended = stop_run(run, timeout_s=90)
    told = retold(ended.reason) if ended else say("following.still_stopping")
    print(say("following.told", run=run.name, sentence=told))
    return 0 if ended and not run_processes(run.id) else 1


def _setting(key: str, value: str, source: str) -> str:
    """`model = resnet18  (flag)`."""
    return say("following.setting", name=key, value=value, source=say(f"following.from_{source}"))


def _value(spec: RunSpec, key: str) -> str:
    """As a preset's file and `--set` would write it."""
    value: object = spec
    for name in key.split("."):
        value = getattr(value, name)
    value = value.label if hasattr(value, "label") else value
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
