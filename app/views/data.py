"""What is in a data set, at a glance: facts, notes and a few pictures."""

from __future__ import annotations

import base64
import functools
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from app.views import figures
from ringside.data import ImageData, open_data, rows_in, source_names, thumbnail
from ringside.spec import DataSpec
from ringside.words import say, say_count, speaking, spoken, translated

NUM_PICTURES = 8
PICTURE_PX = 72


@dataclass(frozen=True)
class DataFacts:
    """A checked data set; `pictures` are (name, PNG as data URI)."""

    title: str
    facts: tuple[str, ...]
    notes: tuple[str, ...]
    synthetic: bool
    pictures: tuple[tuple[str, str], ...]


def source_choices() -> list[tuple[str, str]]:
    """(title, name) of every source; a person's own pictures come last, under the name `folder`."""
    named = [(_told(one.title), one.name) for one in source_names() if one.name != "folder"]
    return [*named, (say("data.own"), "folder")]


def data_facts(spec: DataSpec, skip: Collection[str] = ()) -> DataFacts:
    """Open the data without `skip` and look at a few pictures; DataError with one sentence."""
    if spec.repository:
        return _hub_facts(spec)
    if spec.source == "parquet":
        return _parquet_facts(spec)
    # A folder may change between two looks, the built-in sources do not.
    if spec.path:
        return _facts(open_data(spec, skip=skip))
    return _cached_facts(spec.source, spec.profile, spec.image_size, spoken())


def _hub_facts(spec: DataSpec) -> DataFacts:
    """The name and the commit: to know more, all of the data would have to be downloaded."""
    commit = say("data.commit", commit=str(spec.revision)[:8])
    return DataFacts(
        title=spec.label,
        facts=(spec.label, commit),
        notes=(say("data.hub"),),
        synthetic=False,
        pictures=(),
    )


def _parquet_facts(spec: DataSpec) -> DataFacts:
    """What the footers of the files say: to know more, all of them would have to be copied."""
    num_rows, num_files, num_bytes = rows_in(Path(spec.path or ""))
    rows, files = say_count("row", num_rows), say_count("file", num_files)
    held = say("data.parquet_rows", rows=rows, files=files, size=figures.size(num_bytes))
    return DataFacts(
        title=spec.label,
        facts=(spec.label, held),
        notes=(say("data.parquet"),),
        synthetic=False,
        pictures=(),
    )


@functools.lru_cache(maxsize=16)
def _cached_facts(source: str, profile: str | None, image_size: int, language: str) -> DataFacts:
    """Facts are words, so they are kept by language."""
    with speaking(language):
        return _facts(open_data(DataSpec(source=source, profile=profile, image_size=image_size)))


def _facts(data: ImageData) -> DataFacts:
    images = len(data.train) + len(data.val)
    labels = int(data.train.targets.sum()) + int(data.val.targets.sum())
    facts = [
        say("data.images", n=figures.count(images)),
        say("data.labels", n=figures.count(len(data.classes))),
        say("data.split", train=figures.count(len(data.train)), val=figures.count(len(data.val))),
    ]
    if data.task == "multi_label" and images:
        facts.insert(2, say("data.per_image", n=f"{labels / images:.1f}"))
    return DataFacts(
        title=_told(data.title),
        facts=tuple(facts),
        notes=tuple(map(_told, data.notes)),
        synthetic=data.synthetic,
        pictures=tuple(_pictures(data)),
    )


def _told(text: str) -> str:
    """What a source says of itself, in the language of the reader where that is known."""
    return translated(f"data_source.{text}", text)


def _pictures(data: ImageData) -> list[tuple[str, str]]:
    """Pictures spread over the training split; reading them is the quick check that they decode."""
    total = len(data.train)
    chosen = sorted({i * total // NUM_PICTURES for i in range(NUM_PICTURES)}) if total else []
    found = []
    for i in chosen:
        png = thumbnail(data.train.read(i), data.train.name(i), PICTURE_PX)
        found.append((data.train.name(i), png_uri(png)))
    return found


def png_uri(png: bytes) -> str:
    """A PNG that travels inside the page."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
