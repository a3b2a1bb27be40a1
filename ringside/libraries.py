"""Where presets come from: the built-in folder, your own, and the team's in the order given.

`RINGSIDE_LIBRARY` names folders (a share, a Git checkout) and data sets of the Hub, `:` between
them: `/team/presets:hf://datasets/acme/presets@v2`. Reading them runs nothing and asks no network:
what the Hub holds is fetched when somebody says so, and stays at that commit.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ringside import hub_library
from ringside.words import say

BUILT_IN, YOURS, TEAM = "built-in", "yours", "team"
VARIABLE = "RINGSIDE_LIBRARY"
GIT_TIMEOUT_S = 5.0


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One library. `place` is its folder or address, `prefix` what stands before a taken name.

    `fault` says why a library cannot be read; `folder` is then None.
    """

    origin: str
    place: str
    prefix: str
    folder: Path | None = None
    fault: str | None = None


def built_in_folder() -> Path:
    """`accelerate_configs`, beside this package in a clone, an editable install and a wheel."""
    return Path(__file__).resolve().parent.parent / "accelerate_configs"


def user_folder() -> Path:
    """Where presets of your own are kept: one folder per user."""
    import platformdirs

    return Path(platformdirs.user_data_dir("ringside")) / "presets"


def sources() -> Iterator[Source]:
    """All libraries in order: built-in, your own, the team's."""
    for origin, folder in ((BUILT_IN, built_in_folder() / "presets"), (YOURS, user_folder())):
        yield Source(origin=origin, place=str(folder), prefix=origin, folder=folder)
    for number, text in enumerate(team_places(), start=1):
        prefix = TEAM if number == 1 else f"{TEAM}{number}"
        if hub_library.is_address(text):
            yield _from_hub(text, prefix)
        else:
            folder = Path(text).expanduser()
            yield Source(origin=TEAM, place=str(folder), prefix=prefix, folder=folder)


def team_places() -> list[str]:
    """The parts of `RINGSIDE_LIBRARY`; the colon of `hf://` separates nothing."""
    text = os.environ.get(VARIABLE, "")
    return [part.strip() for part in re.split(rf"{os.pathsep}(?!//)", text) if part.strip()]


def provenance(source: Source) -> str:
    """The place in words: for a Git checkout with its remote and commit, without credentials.

    Two reads by `git` that start no hook and no file-system monitor; without git, the folder.
    """
    if source.folder is None or source.origin != TEAM or source.place.startswith("hf://"):
        return source.place
    commit = _git(source.folder, "rev-parse", "--short=12", "HEAD")
    if commit is None:
        return source.place
    remote = _git(source.folder, "config", "--get", "remote.origin.url") or "git"
    return f"{source.place} ({re.sub(r'//[^/]*@', '//', remote)} @ {commit})"


def _from_hub(text: str, prefix: str) -> Source:
    address = hub_library.parse_address(text)
    pin = None if isinstance(address, str) else hub_library.pinned(address)
    if isinstance(address, str):
        return Source(origin=TEAM, place=text, prefix=prefix, fault=address)
    if pin is None:
        fault = say("keeping.not_fetched", text=text)
        return Source(origin=TEAM, place=text, prefix=prefix, fault=fault)
    place = f"hf://datasets/{address.repository}@{pin.commit[:12]}"
    return Source(origin=TEAM, place=place, prefix=prefix, folder=Path(pin.folder))


def _git(folder: Path, *words: str) -> str | None:
    """What git says about the folder; None for no checkout, no git, or none in time."""
    argv = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-C",
            str(folder), *words]  # fmt: skip
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=GIT_TIMEOUT_S, env=environment,
            check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
