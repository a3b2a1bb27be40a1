"""Presets in a data set repository of the Hugging Face Hub, kept at one commit.

`hf://datasets/OWNER/NAME@REVISION`; REVISION is a branch, a tag or a commit, by default main. Only
the `.yaml` files at its top are taken. `fetch` writes the commit down, and until the next
`fetch` all presets come from that commit, without the network.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from ringside.errors import PresetError
from ringside.rundir import write_atomic
from ringside.words import say

PREFIX = "hf://"
_ADDRESS = re.compile(
    r"hf://datasets/(?P<repository>[\w.-]{1,96}/[\w.-]{1,96})(@(?P<revision>[\w./-]{1,200}))?"
)


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """A repository and what is asked of it."""

    repository: str
    revision: str = "main"

    @property
    def text(self) -> str:
        """As it is written in `RINGSIDE_LIBRARY`."""
        return f"{PREFIX}datasets/{self.repository}@{self.revision}"


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that was fetched and the folder that holds its files."""

    commit: str
    folder: str


def is_address(text: str) -> bool:
    """Whether this names the Hub rather than a folder."""
    return text.startswith(PREFIX)


def parse_address(text: str) -> Address | str:
    """The address, or the sentence that says why it is none."""
    match = _ADDRESS.fullmatch(text)
    if match is None or ".." in text:
        return say("keeping.no_address", text=text)
    return Address(repository=match["repository"], revision=match["revision"] or "main")


def pinned(address: Address) -> Pin | None:
    """What was fetched for this address; None before that, or when its files are gone."""
    pin = _pins().get(address.text)
    return pin if pin is not None and Path(pin.folder).is_dir() else None


def fetch(address: Address) -> Pin:
    """Download its presets now and pin their commit; PresetError when the Hub cannot be reached."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    endpoint = os.environ.get("HF_ENDPOINT")
    try:
        # Asked first: without a network snapshot_download would give what the cache holds.
        info = HfApi(endpoint=endpoint).dataset_info(address.repository, revision=address.revision)
        folder = snapshot_download(
            address.repository,
            repo_type="dataset",
            revision=info.sha,
            allow_patterns="*.yaml",
            ignore_patterns="*/*",
            endpoint=endpoint,
        )
    except (RepositoryNotFoundError, RevisionNotFoundError):
        raise PresetError(
            f"{address.text} is not on the Hub, or not for you; check owner, name and revision."
        ) from None
    except Exception as error:  # of networks, proxies, disks and offline mode
        raise PresetError(
            f"{address.text} cannot be fetched ({type(error).__name__}); presets that were fetched "
            "before stay as they are. Try again with a network."
        ) from error
    pin = Pin(commit=info.sha or Path(folder).name, folder=str(folder))
    _write({**_pins(), address.text: pin})
    return pin


def _pins_file() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("ringside")) / "hub_libraries.json"


def _pins() -> dict[str, Pin]:
    try:
        return msgspec.json.decode(_pins_file().read_bytes(), type=dict[str, Pin])
    except (OSError, msgspec.DecodeError):
        return {}


def _write(pins: dict[str, Pin]) -> None:
    path = _pins_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, msgspec.json.format(msgspec.json.encode(pins)))
