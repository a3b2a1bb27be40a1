"""What `hf:owner/name[:configuration][@revision]` means, and which commit it is now."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ringside.errors import DataError
from ringside.words import say

PREFIX = "hf:"
TIMEOUT_S = 10.0
PINNED_FOR_S = 300  # the page asks at every change of its form

_PART = r"\w(?:[\w.-]*\w)?"  # never `..`: parts become names of folders
_NAME = re.compile(rf"({_PART}/{_PART})(?::({_PART}))?(?:@([\w./-]+))?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class HubName:
    """The parts of a name; without a `revision` the newest commit is meant."""

    repository: str
    configuration: str | None
    revision: str | None


def parse_name(text: str) -> HubName:
    """The parts of `hf:owner/name[:configuration][@revision]`, else `DataError`."""
    found = _NAME.fullmatch(text.removeprefix(PREFIX))
    if not found:
        raise DataError(say("hub.bad_name", text=text))
    return HubName(*found.groups())


def commit_of(repository: str, revision: str | None) -> str:
    """The commit hash of a branch, tag or commit; of the newest commit when it is None.

    Where the Hub cannot be reached and no revision is given, the newest commit that lies in the
    local cache. Raises `DataError` for what the Hub does not have, and when it cannot be asked.
    """
    if revision and _COMMIT.fullmatch(revision):
        return revision
    return _commit_now(repository, revision, int(time.time() // PINNED_FOR_S))


@lru_cache(maxsize=64)
def _commit_now(repository: str, revision: str | None, _period: int) -> str:
    try:
        return ask_hub(repository, revision)
    except HubAwayError:
        cached = [] if revision else cached_commits(repository)
        if not cached:
            raise
        return cached[-1]


class HubAwayError(DataError):
    """The Hub does not answer."""


def ask_hub(repository: str, revision: str | None) -> str:
    """The commit hash that the Hub names, within seconds.

    Raises `HubAwayError` when it cannot be asked, `DataError` for what it does not have.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        info = HfApi().dataset_info(repository, revision=revision, timeout=TIMEOUT_S)
    except RevisionNotFoundError as error:
        raise DataError(
            say("hub.no_revision", name=f"{PREFIX}{repository}", revision=revision)
        ) from error
    except RepositoryNotFoundError as error:  # a gated or private one too, for who may not read it
        raise DataError(say("hub.no_data_set", repository=repository)) from error
    except Exception as error:  # httpx.HTTPError, OfflineModeIsEnabled, OSError and others
        raise _away(repository, revision, error) from error
    if not info.sha:
        raise DataError(say("hub.no_commit", repository=repository))
    return info.sha


def _away(repository: str, revision: str | None, error: Exception) -> HubAwayError:
    wanted = f"{PREFIX}{repository}" + (f"@{revision}" if revision else "")
    reason = say("hub.because", why=str(error).splitlines()[0][:120]) if str(error) else ""
    return HubAwayError(say("hub.away", reason=reason, wanted=wanted))


def cache_folder(repository: str) -> Path:
    """Where `datasets` keeps what it has prepared of a repository: CONFIGURATION/VERSION/COMMIT."""
    import datasets
    from datasets.naming import camelcase_to_snakecase

    owner, _, name = repository.partition("/")
    root = Path(os.path.expanduser(datasets.config.HF_DATASETS_CACHE))
    return root / f"{owner}___{camelcase_to_snakecase(name)}"


def cached_commits(repository: str) -> list[str]:
    """The commits of which something is prepared here, in the order of their making."""
    folders = [
        path
        for path in cache_folder(repository).glob("*/*/*")
        if path.is_dir() and _COMMIT.fullmatch(path.name)
    ]
    return [path.name for path in sorted(folders, key=lambda path: path.stat().st_mtime)]
