"""Finds the data sources and turns what a person types into a data set."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Protocol, cast

import msgspec

from ringside.data import sources
from ringside.data.folder.labels import parse_separator
from ringside.data.folder.table import TABLE_SUFFIXES
from ringside.data.images import ImageData, Task
from ringside.errors import DataError, nearest
from ringside.spec import DataSpec
from ringside.words import say

MIN_IMAGE_SIZE, MAX_IMAGE_SIZE = 8, 4096  # pixels, as in DataSpec


class SourceInfo(msgspec.Struct, frozen=True):
    """One entry of the data menu; `default_image_size` in pixels."""

    name: str
    title: str
    synthetic: bool
    default_image_size: int


class _Source(Protocol):
    """What every module of `ringside.data.sources` has."""

    NAME: str
    TITLE: str
    SYNTHETIC: bool
    DEFAULT_IMAGE_SIZE: int

    def open_source(self, spec: DataSpec) -> ImageData: ...


class _FileSource(Protocol):
    """A source that opens what lies at `spec.path`."""

    def open_source(self, spec: DataSpec, skip: frozenset[str]) -> ImageData: ...


@cache
def _sources() -> dict[str, _Source]:
    names = [module.name for module in pkgutil.iter_modules(sources.__path__)]
    modules = [importlib.import_module(f"{sources.__name__}.{name}") for name in sorted(names)]
    return {module.NAME: cast(_Source, module) for module in modules}


def source_names() -> list[SourceInfo]:
    """The folder and all sources that a name alone opens, in the order of their names."""
    return [
        SourceInfo(source.NAME, source.TITLE, source.SYNTHETIC, source.DEFAULT_IMAGE_SIZE)
        for source in _sources().values()
        if source.NAME == "folder" or _opens_by_name(source)
    ]


def _opens_by_name(source: _Source) -> bool:
    return source.NAME != "folder" and getattr(source, "BY_NAME", True)


def open_data(spec: DataSpec, *, skip: Collection[str] = ()) -> ImageData:
    """Open the data set. Raises `DataError` with a sentence about what cannot be used.

    `skip` names files (rows of a data set of the Hub) to leave out, as `check_data` names them in
    `bad`; generated and shipped data hold none.
    """
    source = _source(spec.source)
    if not skip:
        return source.open_source(spec)
    if spec.path is None and spec.repository is None:
        raise DataError(say("dataset.nothing_to_skip", label=spec.label, first=min(skip)))
    return cast(_FileSource, source).open_source(spec, skip=frozenset(skip))


def count_training(spec: DataSpec, enough: int) -> int | None:
    """How many pictures a run would train on; None where saying so takes more than a moment.

    From 4 x `enough` on a source may leave the counting.
    """
    counts = getattr(_source(spec.source), "num_training", None)
    return cast("int | None", counts(spec, enough)) if counts else None


def task_of(spec: DataSpec) -> Task | None:
    """One class a picture or any number; None where saying so takes more than a moment."""
    tells = getattr(_source(spec.source), "task_of", None)
    return cast("Task | None", tells(spec)) if tells else None


def _source(name: str) -> _Source:
    if name not in _sources():
        raise DataError(say("dataset.no_source", name=name, hint=nearest(name, _sources())))
    return _sources()[name]


def parse_data(
    text: str,
    *,
    image_size: int | None = None,
    cwd: Path | None = None,
    separator: str | None = None,
) -> DataSpec:
    """What `--data` means: a source ("emoji"), with a profile ("products:ci"), a folder, a table.

    The name of a source wins over a folder of the same name; `./emoji` is the folder. `image_size`
    is in pixels; without it the default of the profile or source counts, and without
    a profile the first one. Relative paths start at `cwd`. `separator` is what stands between the
    labels of a cell, as a character or its name. `hf:owner/name` asks the Hub for its commit.
    Raises `DataError` for anything else, with the nearest known name.
    """
    spec = _parsed(text, image_size, cwd or Path.cwd())
    if separator is None:
        return spec
    if not getattr(_source(spec.source), "READS_TABLES", False):
        raise DataError(say("dataset.no_table_of_labels", label=spec.label))
    return msgspec.structs.replace(spec, separator=parse_separator(separator))


def _parsed(text: str, image_size: int | None, cwd: Path) -> DataSpec:
    if image_size is not None and not MIN_IMAGE_SIZE <= image_size <= MAX_IMAGE_SIZE:
        raise DataError(
            say(
                "dataset.bad_image_size",
                image_size=image_size,
                low=MIN_IMAGE_SIZE,
                high=MAX_IMAGE_SIZE,
            )
        )
    name, _, profile = text.strip().partition(":")
    if name in _sources() and _opens_by_name(_sources()[name]):
        return _named(name, profile, image_size)
    for source in _sources().values():
        spec_of = getattr(source, "spec_of", None)
        if spec_of and (spec := spec_of(text.strip())):
            size = image_size or spec.image_size
            return cast(DataSpec, msgspec.structs.replace(spec, image_size=size))
    return _folder(text.strip(), image_size, cwd)


def _named(name: str, profile: str, image_size: int | None) -> DataSpec:
    source = _source(name)
    if check_profile := getattr(source, "check_profile", None):
        check_profile(profile or None)
        size = image_size or source.DEFAULT_IMAGE_SIZE
        return DataSpec(source=name, profile=profile or None, image_size=size)
    profiles: dict[str, int] = getattr(source, "PROFILES", {})
    if profile and not profiles:
        raise DataError(say("dataset.no_profiles", text=name, name=name, profile=profile))
    if profile and profile not in profiles:
        raise DataError(
            say("dataset.no_profile", name=name, profile=profile, hint=nearest(profile, profiles))
        )
    chosen = profile or next(iter(profiles), None)
    default = profiles[chosen] if chosen else source.DEFAULT_IMAGE_SIZE
    return DataSpec(source=name, profile=chosen, image_size=image_size or default)


def _folder(text: str, image_size: int | None, cwd: Path) -> DataSpec:
    names = [name for name, source in _sources().items() if _opens_by_name(source)]
    if not text or text == "folder":
        raise DataError(say("dataset.none_named", names=", ".join(names)))
    path = Path(os.path.abspath(cwd / os.path.expanduser(text)))
    if path.is_file() and path.suffix.lower() not in TABLE_SUFFIXES:
        raise DataError(
            say(
                "dataset.no_table", path=path, endings=", ".join(TABLE_SUFFIXES), folder=path.parent
            )
        )
    if not path.exists():
        raise DataError(say("dataset.no_data", text=text, hint=nearest(text, names)))
    source = next((s for s in _sources().values() if _claims(s, path)), _source("folder"))
    size = image_size or source.DEFAULT_IMAGE_SIZE
    return DataSpec(source=source.NAME, path=str(path), image_size=size)


def _claims(source: _Source, path: Path) -> bool:
    claims_folder = getattr(source, "claims_folder", None)
    return claims_folder is not None and bool(claims_folder(path))
