"""The set-up of a run: what was asked for, and what really ran."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from app.views import figures
from ringside.preflight import Item, kept_of
from ringside.run import RunRecord, require_spec
from ringside.rundir import RunDir
from ringside.sentences import plan_notes, plan_sentence
from ringside.spec import Observed
from ringside.words import catalogue, say, say_count, say_few


def setup_lines(record: RunRecord) -> Iterator[tuple[str, str]]:
    """What was asked for, and what really ran."""
    spec = require_spec(record)
    yield say("setup.asked"), plan_sentence(spec)
    yield from ((say("setup.note"), note) for note in plan_notes(spec))
    if record.started is not None:
        images = (figures.count(n) for n in (record.started.num_train, record.started.num_val))
        yield say("setup.data"), say("setup.data_value", train=next(images), val=next(images),
                                     title=record.started.data_title)  # fmt: skip
    for item in accepted_warnings(record):
        yield say("setup.accepted"), item.sentence
    if record.observed is not None:
        yield from _observed(record.observed)
    if spec.data.skip:
        yield say("setup.skip"), _skipped_files(spec.data.skip)
    if record.best_checkpoint:
        yield say("setup.best"), record.best_checkpoint
    yield say("setup.folder"), record.path


def accepted_warnings(record: RunRecord) -> tuple[Item, ...]:
    """The warnings of the preflight that somebody chose to start in spite of."""
    kept = kept_of(RunDir(Path(record.path)))
    return kept.accepted_items if kept else ()


def _skipped_files(names: tuple[str, ...]) -> str:
    """How many files were left out on purpose, and the first of them."""
    return say("setup.skip_value", files=say_count("file", len(names)), names=say_few(names))


def _observed(seen: Observed) -> Iterator[tuple[str, str]]:
    really = say(
        "setup.really_value",
        processes=seen.num_processes,
        strategy=word_for("strategy", seen.strategy),
        precision=word_for("precision", seen.mixed_precision),
        backend=seen.backend or figures.DASH,
        device=seen.device_name,
    )
    yield say("setup.really"), really
    yield say("setup.parameters"), figures.count(seen.num_parameters)
    if seen.ema_decay is not None:
        yield say("setup.average"), say("setup.average_value", decay=seen.ema_decay)
    yield say("setup.bytes"), figures.size(seen.reduced_bytes_per_step)
    yield say("setup.versions"), " · ".join(f"{k} {v}" for k, v in seen.versions.items())


def word_for(section: str, key: str) -> str:
    """The word for a name that comes from a run; a name without one stands for itself."""
    return catalogue().get(f"{section}.{key}", key)
