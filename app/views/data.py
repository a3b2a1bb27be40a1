"""What is in a data set, at a glance: facts, notes and a few pictures."""

from __future__ import annotations

import base64
import functools
from dataclasses import dataclass

from app.views import figures
from ringside.data import ImageData, open_data, parse_data, source_names, thumbnail
from ringside.spec import DataSpec
from ringside.words import say

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
    """(title, name) of every source; the folder comes last."""
    sources = sorted(source_names(), key=lambda source: source.name == "folder")
    return [(source.title, source.name) for source in sources]


def data_facts(text: str) -> DataFacts:
    """Open the data and look at a few pictures; raises DataError with one sentence."""
    spec = parse_data(text)
    # A folder may change between two looks, the built-in sources do not.
    if spec.path:
        return _facts(open_data(spec))
    return _cached_facts(spec.source, spec.profile, spec.image_size)


@functools.lru_cache(maxsize=16)
def _cached_facts(source: str, profile: str | None, image_size: int) -> DataFacts:
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
        title=data.title,
        facts=tuple(facts),
        notes=data.notes,
        synthetic=data.synthetic,
        pictures=tuple(_pictures(data)),
    )


def _pictures(data: ImageData) -> list[tuple[str, str]]:
    """Pictures spread over the training split; reading them is the quick check that they decode."""
    total = len(data.train)
    chosen = sorted({i * total // NUM_PICTURES for i in range(NUM_PICTURES)}) if total else []
    found = []
    for i in chosen:
        png = thumbnail(data.train.read(i), data.train.name(i), PICTURE_PX)
        uri = f"data:image/png;base64,{base64.b64encode(png).decode()}"
        found.append((data.train.name(i), uri))
    return found
