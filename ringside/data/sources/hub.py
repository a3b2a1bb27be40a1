"""Data sets of the Hugging Face Hub, through the `datasets` library, at one commit."""

from __future__ import annotations

from ringside.data.hub.naming import PREFIX, commit_of, parse_name
from ringside.data.hub.opening import open_rows
from ringside.data.hub.reading import read_hub
from ringside.data.images import ImageData
from ringside.spec import DataSpec

NAME = "hub"
TITLE = "A data set of the Hugging Face Hub"
SYNTHETIC = False
DEFAULT_IMAGE_SIZE = 224
BY_NAME = False
READS_TABLES = True


def spec_of(text: str) -> DataSpec | None:
    """The pinned spec of `hf:owner/name[:configuration][@revision]`; None for another text."""
    if not text.startswith(PREFIX):
        return None
    name = parse_name(text)
    return DataSpec(
        source=NAME,
        profile=name.configuration,
        image_size=DEFAULT_IMAGE_SIZE,
        repository=name.repository,
        revision=commit_of(name.repository, name.revision),
    )


def open_source(spec: DataSpec, skip: frozenset[str] = frozenset()) -> ImageData:
    """The pictures of `spec.repository` at the commit `spec.revision`; nothing is decoded here.

    `skip` names rows as `check_data` does, such as `train/17`.
    """
    title = f"{spec.repository} at {str(spec.revision)[:8]}"
    return open_rows(spec, read_hub(spec), title, skip)


def num_training(spec: DataSpec, enough: int) -> int | None:  # noqa: ARG001
    """None, because all rows would have to be loaded; after a check they lie on this machine."""
    return len(open_source(spec, frozenset(spec.skip)).train) if spec.skip else None
