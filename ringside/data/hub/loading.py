"""Gets the splits of one commit of a repository, from this machine or from the Hub, or of files."""

from __future__ import annotations

import glob
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringside.data.hub.naming import PREFIX, ask_hub, cache_folder
from ringside.errors import DataError
from ringside.words import say

if TYPE_CHECKING:
    from datasets import Dataset


def load_splits(repository: str, configuration: str | None, commit: str) -> dict[str, Dataset]:
    """All splits, memory-mapped; what is prepared already needs no network.

    Raises `DataError` when the Hub cannot be reached or the repository holds no usable data.
    """
    import datasets

    _show_progress_to_people()
    try:
        builder = _prepared_builder(repository, configuration, commit)
        if builder is None:
            ask_hub(repository, commit)  # `datasets` itself tries for half a minute
            _refuse_folder(repository)
            builder = datasets.load_dataset_builder(repository, configuration, revision=commit)
            # Without network `datasets` falls back to the newest commit that it has prepared.
            if builder.hash != commit or type(builder) is _cache_builder():
                raise ConnectionError("the connection broke")
            builder.download_and_prepare()
        return dict(builder.as_dataset())
    except DataError:
        raise
    except Exception as error:  # of files, formats, configurations and disks
        raise _cannot_load(repository, error) from error


def load_files(
    path: Path, by_split: Mapping[str, Sequence[Path]], features: Any
) -> dict[str, Dataset]:
    """All splits of parquet files, as one copy in the cache of `datasets`, memory-mapped.

    `features` name what is a picture. Raises `DataError`, with the `path` that a person named, for
    files that differ in their columns or cannot be read.
    """
    import datasets

    _show_progress_to_people()
    files = {
        name: [glob.escape(str(file.absolute())) for file in several]
        for name, several in by_split.items()
    }
    try:
        builder = datasets.load_dataset_builder("parquet", data_files=files, features=features)
        builder.download_and_prepare()
        return dict(builder.as_dataset())
    except Exception as error:  # of files, columns and disks
        reason = " ".join(str(error.__cause__ or error).split())[:300] or type(error).__name__
        raise DataError(say("dataset.no_parquet_rows", path=path, reason=reason)) from error


def _show_progress_to_people() -> None:
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()


def _refuse_folder(repository: str) -> None:
    """`datasets` would take a folder of this name for the repository."""
    if Path(repository).exists():
        raise DataError(
            say(
                "hub.folder_in_the_way",
                folder=Path(repository).absolute(),
                name=f"{PREFIX}{repository}",
                repository=repository,
            )
        )


def _cache_builder() -> type[object]:
    from datasets.packaged_modules.cache.cache import Cache

    return Cache  # type: ignore[no-any-return]


def _prepared_builder(repository: str, configuration: str | None, commit: str):  # type: ignore[no-untyped-def]
    """A builder over exactly this configuration and commit; None when it is not prepared."""
    name = configuration or "default"
    found = next(cache_folder(repository).glob(f"{name}/*/{commit}"), None)
    if found is None:
        return None
    return _cache_builder()(  # type: ignore[call-arg]
        repo_id=repository,
        dataset_name=repository.partition("/")[2],
        config_name=name,
        version=found.parent.name,
        hash=commit,
    )


def _cannot_load(repository: str, error: Exception) -> DataError:
    name = f"{PREFIX}{repository}"
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    if "Config name is missing" in reason:
        remedy = say("hub.name_configuration", name=name)
    else:
        remedy = say("hub.or_look")
    return DataError(say("hub.unloadable", name=name, reason=reason, remedy=remedy))
