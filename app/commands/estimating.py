"""The command that predicts presets from what was measured on this machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from app.commands.resolving import resolve_all
from ringside.errors import RingsideError
from ringside.estimate import Calibration, Estimate, Inputs, calibrate, estimate, inputs_for
from ringside.estimate.steps import NotEstimated, refuse_unmodelled
from ringside.hardware import Hardware, read_hardware
from ringside.launch.occupied import require_idle
from ringside.presets import Library
from ringside.request import RunRequest
from ringside.run import fold_run
from ringside.rundir import find_run, runs_root
from ringside.spec import RunSpec
from ringside.words import say
from ringside.words.retelling import retold

if TYPE_CHECKING:
    from rich.table import Table

GIB = 2**30
HEADS = (
    "column.preset", "column.step_ms", None, "estimate.epoch", "column.rate", "column.speedup",
    "estimate.exposed", "estimate.link_gain", "column.memory_gib", "estimate.sure",
)  # fmt: skip
"""Keys of the words; None is the range of the step before it."""
Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Question:
    """What the command line asks: `request` without a preset's name, and how to answer.

    `like`: a run whose measured step corrects the replay. `data_rate_per_s`: images/s of all
    loaders together.
    """

    presets: tuple[str, ...]
    request: RunRequest
    measure: bool = False
    like: str | None = None
    data_rate_per_s: float | None = None


def run(question: Question, *, as_json: bool) -> int:
    """Print the predictions, the fastest epoch first; 1 when there is none."""
    hardware, root = read_hardware(), runs_root()
    specs, refused = _resolved(question, hardware)
    if question.measure:
        require_idle(root, hardware)
        refused |= _measure(specs, hardware, root)
    calibration = _calibration(question.like, hardware, root) if question.like else None
    found = [_predict(spec, hardware, root, question, calibration) for spec in specs]
    found.sort(key=_place)
    if as_json:
        print(msgspec.json.encode({"presets": [shape(one) for one in found], "refused": refused})
              .decode())  # fmt: skip
    else:
        _print(found, refused)
    return 0 if any(one.step_ms is not None for one in found) else 1


def shape(found: Estimate) -> dict[str, Any]:
    """The frozen shape of one of `presets` in `estimate --json`."""
    return {name: getattr(found, name) for name in Estimate.__struct_fields__ if name != "format"}


def _resolved(question: Question, hardware: Hardware) -> tuple[list[RunSpec], dict[str, str]]:
    """The requests, and a sentence for each of several presets that cannot run here."""
    library = Library()
    names = question.presets or tuple(
        preset.name for preset in library if hardware.device in preset.about.devices
    )
    return resolve_all(question.request, names, hardware, library)


def _predict(
    spec: RunSpec, hardware: Hardware, root: Path, question: Question,
    calibration: Calibration | None,
) -> Estimate:  # fmt: skip
    inputs = inputs_for(spec, hardware, root, data_rate_per_s=question.data_rate_per_s)
    return estimate(spec, replace(inputs, calibration=calibration))


def _calibration(run_id: str, hardware: Hardware, root: Path) -> Calibration:
    record = fold_run(find_run(root, run_id))
    inputs = inputs_for(record.spec, hardware, root) if record.spec else Inputs()
    try:
        return calibrate(record, inputs.description, inputs.sweep)
    except NotEstimated as reason:
        raise RingsideError(
            say("estimate.cannot_correct", run=record.name, reason=str(reason))
        ) from None


def _measure(specs: list[RunSpec], hardware: Hardware, root: Path) -> dict[str, str]:
    """Measure what each request lacks; a sentence for each of which something failed.

    What failed for one is not tried again for another.
    """
    failed: dict[object, str] = {}
    sentences = {}
    for spec in specs:
        try:
            refuse_unmodelled(spec)
        except NotEstimated:
            continue  # The prediction says why; no measurement changes that.
        try:
            measure_missing(spec, hardware, root, _tell, failed)
        except RingsideError as error:
            # What a rank wrote before it ended is English, as all files are.
            sentences[spec.preset] = retold(str(error))
    return sentences


def measure_missing(
    spec: RunSpec, hardware: Hardware, root: Path, tell: Callable[[str], None],
    failed: dict[object, str],
) -> None:  # fmt: skip
    """Measure and store what an estimate of `spec` lacks: one device's step, the collectives.

    RingsideError at the first that fails, with the sentence in `failed` where it stands already.
    """
    from ringside.estimate.buckets import bucket_sizes
    from ringside.estimate.work import work_at
    from ringside.launch.crowd import measure_crowd
    from ringside.launch.probing import measure_description, measure_sweep
    from ringside.measurements.crowd import crowding_ratio, with_crowd
    from ringside.measurements.store import Store, key_of_model

    def once(what: object, measure: Callable[[], Measured]) -> Measured:
        if what in failed:
            raise RingsideError(failed[what])
        try:
            return measure()
        except RingsideError as error:
            failed[what] = str(error)
            raise

    store, inputs = Store(root), inputs_for(spec, hardware, root)
    model, num, batch = key_of_model(spec), spec.num_processes, spec.micro_batch
    description = inputs.description
    if description is None or work_at(description, batch) is None:
        description = once((model, batch), lambda: measure_description(spec, hardware, say=tell))
        store.save(description)
    if crowding_ratio(description, num, batch) is None:
        crowded = once((model, batch, num), lambda: measure_crowd(spec, say=tell))
        description = with_crowd(description, crowded, time.time())
        store.save(description)
    if num > 1 and (inputs.sweep is None or inputs.sweep.num_ranks != num):
        gradients = next((p.gradients for p in description.profiles if p.gradients), ())
        # Trials of other variables are the doctor's.
        sweep = once(
            (num, *sorted(spec.environment.items())),
            lambda: measure_sweep(
                hardware, num, environment=spec.environment, trials=False, say=tell,
                sizes=bucket_sizes(spec, gradients) if spec.strategy == "ddp" else (),
            ),
        )  # fmt: skip
        store.save(sweep)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _place(found: Estimate) -> tuple[bool, float]:
    """Fastest epoch first, also where its length is unknown: more images a second."""
    per_s = found.samples_per_s
    return per_s is None, -(per_s or 0.0)


def _print(found: list[Estimate], refused: dict[str, str]) -> None:
    from rich.console import Console

    width = None if sys.stdout.isatty() else 200
    known = [one for one in found if one.step_ms is not None]
    if known:
        print(say("estimate.lead"))
        console = Console(width=width, highlight=False, markup=False, emoji=False)
        console.print(_table(known))
        console.print("\n" + say("estimate.parts"))
        console.print(_parts(known[0].parts), soft_wrap=True)
    for name, sentence in refused.items():
        print(say("terminal.of_preset", preset=name, sentence=sentence))
    _print_sentences("estimate.not_said", {one.preset: one.missing for one in found})
    _print_sentences("terminal.note", {one.preset: one.notes for one in known})


def _print_sentences(key: str, by_preset: dict[str, tuple[str, ...]]) -> None:
    """Each sentence once, with the presets that it is about unless that is all of them."""
    for sentence in dict.fromkeys(one for some in by_preset.values() for one in some):
        names = [name for name, some in by_preset.items() if sentence in some]
        if len(names) < len(by_preset):
            sentence = say("estimate.about", sentence=sentence, presets=", ".join(names))
        print(say(key, sentence=sentence))


def _table(found: list[Estimate]) -> Table:
    from rich.table import Table

    from app.commands.tables import number, seconds, share

    table = Table(box=None, header_style="dim", pad_edge=False)
    for index, key in enumerate(HEADS):
        title = say(key) if key else ""
        table.add_column(title, justify="left" if index == 0 else "right", no_wrap=True)
    for one in found:
        memory = None if one.memory_bytes is None else one.memory_bytes / GIB
        between = say("estimate.between", low=one.step_ms_low, high=one.step_ms_high)
        sure = say(f"estimate.sure_{one.confidence.replace(' ', '_')}")
        table.add_row(
            one.preset, number(one.step_ms, ".1f"), between,
            seconds(one.epoch_time_s), number(one.samples_per_s, ",.0f"),
            number(one.speedup, ".2f") + "x", share(one.exposed_ratio),
            share(one.gain_ratio), number(memory, ".2f"), sure,
        )  # fmt: skip
    return table


def _parts(parts: dict[str, float]) -> str:
    words = (say(f"estimate.part_{name.removesuffix('_ms')}") for name in parts)
    return "  ".join(f"{word} {ms:.1f}" for word, ms in zip(words, parts.values(), strict=True))
