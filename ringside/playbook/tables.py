"""The tables of a playbook as text, the same for README.md, the page in the zip and the terminal.

English, as all files of a run: a playbook travels. Only the summary is on Ringside's page too, and
so in the language of whoever reads it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ringside.compare import ComparedRun
from ringside.doctor import Finding
from ringside.doctor.ticks import Figure
from ringside.playbook.content import KeptRun, Playbook
from ringside.preset_differences import settings
from ringside.presets import About, PresetFile
from ringside.scores import Interval
from ringside.spec import AccelerateSettings
from ringside.words import percent, say

DASH = "–"
GIB = 2**30
STATES = {"ok": "nothing to do", "attention": "look here", "unknown": "not measured"}
PRECISION = {"no": "fp32", "fp16": "fp16", "bf16": "bf16"}


class Table(NamedTuple):
    """Cells as text; `nothing` is the sentence that stands for a table without rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    nothing: str = "Nothing."


def summary(playbook: Playbook) -> str:
    """What was trained, on what, and what came of it."""
    run, result = playbook.run, playbook.run.result
    rate = gain = ""
    if result.samples_per_s is not None:
        rate = say("playbook.summary_rate", rate=result.samples_per_s)
    if result.speedup.value is not None:
        gain = say("playbook.summary_gain", value=result.speedup.value)
    return say(
        "playbook.summary", model=run.model, preset=playbook.preset,
        hardware=playbook.hardware.label, precision=precision(result.mixed_precision),
        batch=result.global_batch, rate=rate, gain=gain,
    )  # fmt: skip


def precision(word: str) -> str:
    """As people call it; a word of a stranger's file stays."""
    return PRECISION.get(word, word)


def weight(finding: Finding) -> str:
    """Cause, code, share of the step, severity and confidence in a line."""
    parts = [
        finding.cause.replace("_", " "),
        finding.code,
        None if finding.share_ratio is None else f"{percent(finding.share_ratio)} of the step",
        finding.severity,
        f"confidence {finding.confidence}",
        None
        if finding.gain_ratio is None
        else f"removing it saves at most {percent(finding.gain_ratio)} of the step",
    ]
    return ", ".join(part for part in parts if part)


def measured(figure: Figure) -> str:
    """A figure of the walk-through with its source, or how it would be measured."""
    if figure.value is None:
        return f"{DASH} ({figure.how})"
    return f"{figure.value} ({figure.source})"


def results(playbook: Playbook) -> Table:
    """A row for each run, without columns that are empty.

    Score differences are against the first run, with 95 % intervals.
    """
    columns = ("run", "preset", "devices", "precision", "batch", "epoch", "images/s", "speed-up",
               "AUC", "F1 macro", "mAP", "predicted step", "measured step")  # fmt: skip
    rows = [_result(run) for run in playbook.runs]
    told = [at for at in range(len(columns)) if any(row[at] != DASH for row in rows)]
    return Table(
        tuple(columns[at] for at in told), tuple(tuple(row[at] for at in told) for row in rows)
    )


def result_notes(playbook: Playbook) -> list[str]:
    """What the numbers rest on."""
    found = [
        "Speed leaves out the first epoch. A speed-up is images/s over those of the baseline on "
        "one device."
    ]
    if len(playbook.runs) > 1:
        found.append(
            f"Differences of scores are against {playbook.runs[0].name}, with the 95 % interval "
            "of a paired bootstrap where both runs kept their predictions."
        )
    for run in playbook.runs:
        speedup = run.result.speedup
        if speedup.value is None and speedup.reason:
            found.append(f"{run.name}: no speed-up, {speedup.reason}")
        found += [f"{run.name}: not comparable, {why}" for why in run.result.not_comparable]
    if playbook.data.synthetic:
        found.append("The images are made by the program.")
    return found


def settings_table(playbook: Playbook) -> Table:
    """What the preset sets, without what is at its default."""
    usual = settings(
        PresetFile(about=About(title="x", why="", when=""), accelerate=AccelerateSettings())
    )
    rows = tuple(
        (name, text(value))
        for name, value in settings(playbook.preset_file).items()
        if value != usual.get(name)
    )
    return Table(("setting", "value"), rows, "All settings are at their default.")


def hardware_table(playbook: Playbook) -> Table:
    """Devices, links and versions by kind."""
    return Table(("part", "what"), tuple(_hardware(playbook)))


def environment_table(run: KeptRun) -> Table:
    """The variables that shape a distributed run."""
    rows = tuple(run.environment.items())
    return Table(("variable", "value"), rows, "None of them was set.")


def data_table(playbook: Playbook) -> Table:
    """What the images were; the classes by name."""
    data = playbook.data
    rows = [
        ("name", data.name),
        ("title", data.title or DASH),
        ("hash of the manifest", data.fingerprint or DASH),
        ("task", (data.task or DASH).replace("_", " ")),
        ("image size", f"{data.image_size} pixels"),
        ("training images", _number(data.num_train, ",d")),
        ("validation images", _number(data.num_val, ",d")),
        (f"classes ({len(data.classes)})", ", ".join(data.classes) or DASH),
    ]
    return Table(("what", "value"), tuple(rows))


def text(value: Any) -> str:
    """A setting as people read it."""
    if value is None:
        return DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(text, value)) or DASH
    if isinstance(value, dict):
        return ", ".join(f"{name} {text(one)}" for name, one in value.items())
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _result(run: KeptRun) -> tuple[str, ...]:
    one, outcome = run.result, run.outcome
    return (
        run.name,
        one.preset,
        _number(one.num_devices or one.num_processes, "d"),
        precision(one.mixed_precision),
        str(one.global_batch),
        _number(one.epoch_time_s, ".1f", " s"),
        _number(one.samples_per_s, ",.0f"),
        _number(one.speedup.value, ".2f", "x"),
        _score(one, "auc"),
        _score(one, "f1"),
        _score(one, "map"),
        _number(outcome.predicted_step_ms if outcome else None, ".1f", " ms"),
        _number(outcome.step_ms if outcome else None, ".1f", " ms"),
    )


def _score(one: ComparedRun, name: str) -> str:
    """The score; behind it the difference from the first run with its interval."""
    value: float | None = getattr(one, f"{name}_macro")
    interval: Interval | None = getattr(one, f"{name}_interval")
    if value is None:
        return DASH
    if interval is None or one.gate.verdict == "reference":
        return f"{value:.4f}"
    return f"{value:.4f} ({interval.delta:+.4f}, {interval.low:+.4f} to {interval.high:+.4f})"


def _hardware(playbook: Playbook) -> Iterator[tuple[str, str]]:
    found, run = playbook.hardware, playbook.run
    yield "devices", found.label
    if found.gpu_memory_bytes:
        yield "memory of a GPU", f"{found.gpu_memory_bytes / GIB:.0f} GiB"
    kinds = sorted({f"{link.kind} x{link.num_nvlinks}" if link.num_nvlinks else link.kind
                    for link in found.links})  # fmt: skip
    if kinds:
        yield "links between GPUs", ", ".join(kinds)
    yield "backend", found.backend or DASH
    if found.transports:
        yield "NCCL goes through", ", ".join(found.transports)
    yield "cores", _number(found.num_cores, "d")
    if found.memory_bytes:
        yield "memory", f"{found.memory_bytes / GIB:.0f} GiB"
    yield "driver", found.driver or DASH
    yield "system", found.system or DASH
    yield from run.versions.items()


def _number(value: float | None, form: str, unit: str = "") -> str:
    return DASH if value is None else f"{value:{form}}{unit}"
