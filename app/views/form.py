"""From a filled form to a plan in words, the files of the run, and its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.views.before import look_before, with_files_left_out
from app.views.fields import LEAVE_OUT, WAIT, Reports, Values, request_of
from app.views.terminal import terminal_command
from ringside import yaml_text
from ringside.data import DataReport
from ringside.errors import RingsideError
from ringside.estimate import store_estimate
from ringside.hardware import Hardware
from ringside.launch.local import start_run
from ringside.launch.plan import make_plan, quoted_command
from ringside.machine import GpuState
from ringside.preflight import keep
from ringside.presets import Library, Preset, accelerate_config
from ringside.request import resolve
from ringside.rundir import RunDir, list_run_dirs
from ringside.sentences import plan_notes, plan_sentence
from ringside.shelf.measured import Trial, measured_here, trials, words_of
from ringside.spec import DataSpec, FsdpConfig, RunSpec
from ringside.speedup import baseline_of
from ringside.words import say, say_count, translated

MAIN_PRESETS = ("ddp", "ddp_bf16", "ddp_accum4", "fsdp")
RECENT_RUNS = 20
PAGE_WAITS_S = 0.3
"""For runs that were never looked at; the rest is looked at when the page is opened again."""
BASELINE_EPOCHS = 2
"""The first epoch is warm-up, so a baseline of one epoch would measure nothing."""


@dataclass(frozen=True)
class Card:
    """One strategy to choose; `reason` says why it cannot be chosen here.

    `measured` says what it gained here; empty where nobody measured it.
    """

    name: str
    title: str
    why: str
    when: str
    limits: str
    devices: str
    origin: str
    reason: str | None = None
    measured: str = ""


@dataclass(frozen=True)
class Strategies:
    """The cards: the main ones, the rest, and what is wrong with files that cannot be read."""

    main: tuple[Card, ...]
    more: tuple[Card, ...]
    faults: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """What Start would do: a spec and its sentences, or the sentence that refuses it."""

    spec: RunSpec | None
    sentence: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Preview:
    """The preset's own file, and what Start would use: Accelerate's file, command and settings.

    `terminal` is the same run for a shell; `command` is what Ringside will execute in the folder of
    the run. `environment` are (name, value, where it came from) that it adds for the ranks. What
    the form changes stands in `settings` and in the Accelerate file, never in `preset_yaml`.
    """

    preset_yaml: str
    accelerate_yaml: str
    terminal: str
    command: str
    settings: tuple[tuple[str, str, str], ...]
    environment: tuple[tuple[str, str, str], ...] = ()


def strategies(
    hardware: Hardware, library: Library | None = None, root: Path | None = None
) -> Strategies:
    """All presets as cards; those that cannot run on this machine stay visible, with the reason.

    With the folder of runs, what was measured stands on them.
    """
    library = library or Library()
    main = main_presets(hardware)
    found = trials(root, within_s=PAGE_WAITS_S) if root is not None else []
    cards = {preset.name: _card(preset, hardware, found) for preset in library}
    rest = (card for name, card in cards.items() if name not in main)
    return Strategies(
        main=tuple(cards[name] for name in main if name in cards),
        # What cannot run here comes last.
        more=tuple(sorted(rest, key=lambda card: (card.reason is not None, card.name != "single"))),
        faults=tuple(str(fault) for fault in library.faults),
    )


def main_presets(hardware: Hardware) -> tuple[str, ...]:
    """The four cards that come first; with one device, one process leads."""
    if hardware.num_devices() == 1:
        return ("single", *MAIN_PRESETS[:3])
    return MAIN_PRESETS


def find_card(name: str | None, hardware: Hardware) -> Card | None:
    """The card of one preset; None for a name that there is not."""
    preset = Library().presets.get(name or "")
    return _card(preset, hardware) if preset else None


def own_precision(name: str | None) -> str | None:
    """The precision of a preset as its file says; None for a name that there is not."""
    preset = Library().presets.get(name or "")
    return preset.file.accelerate.mixed_precision if preset else None


def distributes(name: str) -> bool:
    """Whether a preset uses more than one device."""
    file = Library().get(name).file
    one = file.accelerate.strategy == "single"
    return not one or file.training.parallelism == "data_parallel"


def _card(preset: Preset, hardware: Hardware, found: Sequence[Trial] = ()) -> Card:
    about = preset.about
    fits = hardware.device in about.devices
    here = measured_here(preset, hardware, found) if found else None
    return Card(
        name=preset.name,
        **{name: told(preset, name) for name in ("title", "why", "when", "limits")},
        devices=" · ".join(say(f"device.{device}") for device in about.devices),
        origin=say(f"origin.{preset.origin}"),
        reason=None if fits else say(f"train.needs_{about.devices[0]}"),
        measured="" if here is None else say("measured.line", sentence=words_of(here)),
    )


def told(preset: Preset, name: str) -> str:
    """A built-in preset says it in the language of the reader, any other as its author wrote it."""
    text: str = getattr(preset.about, name)
    is_ours = preset.origin == "built-in"
    return translated(f"preset.{preset.name.rpartition(':')[2]}_{name}", text) if is_ours else text


def spec_of(values: Values, hardware: Hardware, reports: Reports) -> RunSpec:
    """The request, resolved; bad files are left out as `--skip-bad` does, by the last check."""
    return with_files_left_out(resolve(request_of(values), hardware), values, reports)


def _no_report(_: DataSpec) -> DataReport | None:
    return None


def plan(values: Values, hardware: Hardware, reports: Reports = _no_report) -> Plan:
    """Resolve the form as Start would, and put the outcome into sentences."""
    try:
        spec = spec_of(values, hardware, reports)
    except RingsideError as error:
        return Plan(spec=None, sentence=str(error))
    notes = (*plan_notes(spec), *_bad_file_notes(spec, reports(spec.data)))
    return Plan(spec=spec, sentence=plan_sentence(spec), notes=notes)


def _bad_file_notes(spec: RunSpec, report: DataReport | None) -> list[str]:
    """How many of the bad files that a check found stay out of the run."""
    if report is None or not report.skip or not spec.data.skip:
        return []
    return [say("train.bad_left_out", bad=say_count("bad_file", len(report.skip)))]


def preview(
    values: Values, hardware: Hardware, root: Path, reports: Reports = _no_report
) -> Preview:
    """The preview of the run, for a directory that does not exist yet."""
    spec = spec_of(values, hardware, reports)
    config = accelerate_config(spec.accelerate, spec.num_processes)
    made = make_plan(spec, RunDir(root / say("train.new_run")))
    return Preview(
        preset_yaml=Path(Library().get(spec.preset).path).read_text(encoding="utf-8"),
        accelerate_yaml=yaml_text.dump(config),
        terminal=terminal_command(
            request_of(values), spec.data, root, skip_bad=values.get("bad_files") == LEAVE_OUT
        ),
        command=quoted_command(made),
        settings=tuple(settings_table(spec)),
        environment=tuple(
            (name, value, say("source.preset" if name in spec.environment else "source.ringside"))
            for name, value in made.environment.items()
        ),
    )


def start(
    values: Values, hardware: Hardware, root: Path, reports: Reports = _no_report,
    gpus: tuple[GpuState, ...] = (),
) -> RunDir:  # fmt: skip
    """Start the run; asked twice with one `request_id` it is one run.

    SpecError for an error of the preflight, and for a warning that nobody has accepted.
    """
    spec = spec_of(values, hardware, reports)
    before = look_before(values, hardware, root, reports, gpus)
    if not is_started(spec, root):
        before.require()
    kept = before.record()
    run = _start(spec, hardware, root)
    keep(run, kept)
    return run


def is_started(spec: RunSpec, root: Path) -> bool:
    """Whether this very form was started already: a second press asks no questions."""
    if spec.request_id is None:
        return False
    return any(run.read(run.spec, RunSpec) == spec for run in list_run_dirs(root)[:RECENT_RUNS])


def _start(spec: RunSpec, hardware: Hardware, root: Path) -> RunDir:
    """Start a run, and store beside it what this machine's measurements predict."""
    run = start_run(spec, hardware, root)
    store_estimate(run, spec, hardware, root)
    return run


def start_baseline(
    values: Values, hardware: Hardware, root: Path, reports: Reports = _no_report,
    gpus: tuple[GpuState, ...] = (),
) -> RunDir:  # fmt: skip
    """Start the run that the form's run will be measured against."""
    before = look_before(values, hardware, root, reports, gpus)
    before.require()
    spec = spec_of(values, hardware, reports)
    baseline = msgspec.structs.replace(
        baseline_of(spec),
        epochs=max(BASELINE_EPOCHS, spec.epochs),
        request_id=f"{spec.request_id}-baseline" if spec.request_id else None,
    )
    return _start(baseline, hardware, root)


def start_after_baseline(
    values: Values, hardware: Hardware, root: Path, reports: Reports = _no_report,
    gpus: tuple[GpuState, ...] = (),
) -> RunDir:  # fmt: skip
    """Start the baseline, and queue the form's run behind it; returns the form's run."""
    values = {**values, "when_busy": WAIT}
    start_baseline(values, hardware, root, reports, gpus)
    return start(values, hardware, root, reports, gpus)


def settings_table(spec: RunSpec) -> list[tuple[str, str, str]]:
    """(setting, value, where it came from) for everything that is not a plain default."""
    rows = []
    for key, source in spec.sources.items():
        part, _, name = key.rpartition(".")
        value = getattr(getattr(spec, part) if part else spec, name)
        shown = value.label if isinstance(value, DataSpec) else value
        # The page lets every run wait for its turn; that is no setting of this one.
        if (
            key != "queue"
            and source != "default"
            and shown not in (None, ())
            and not isinstance(shown, FsdpConfig)
        ):
            rows.append((key, _printable(shown), say(f"source.{source}")))
    if spec.data.skip:
        left_out = say_count("file", len(spec.data.skip))
        rows.append(("data.skip", left_out, say("source.flag")))
    return rows


def _printable(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return say("separator.newline") if value == "\n" else str(value)
