"""Takes a few pictures of a run's validation split: `python -m app.views.sample_worker`.

Its argument is the language of whoever asks. It reads the DataSpec as a line of JSON and writes one
line, the pictures in it as they are encoded. In a process of its own, because opening a large data
set takes long.
"""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import msgspec

from app.views.child import end_with_the_page, tell_the_page
from ringside.data import ImageSplit, open_data, thumbnail
from ringside.errors import RingsideError
from ringside.spec import DataSpec
from ringside.words import speak

if TYPE_CHECKING:
    from ringside.data import ImageData

NUM_SAMPLES = 8
MAX_BYTES = 4_000_000
PREVIEW_PX = 96


class Sample(msgspec.Struct, frozen=True):
    """One encoded picture with its name, its true labels and a small PNG."""

    content: bytes
    name: str
    labels: tuple[str, ...]
    png: bytes


class Samples(msgspec.Struct, frozen=True):
    """The answer; without pictures the sentence says why."""

    samples: tuple[Sample, ...] = ()
    sentence: str = ""


def main() -> int:
    """0 when there is an answer, 130 when it was stopped."""
    speak(sys.argv[1])
    spec = msgspec.json.decode(sys.stdin.buffer.readline(), type=DataSpec)
    end_with_the_page()
    try:
        answer = Samples(tuple(_taken(open_data(spec, skip=spec.skip))))
    except RingsideError as error:
        answer = Samples(sentence=str(error))
    except KeyboardInterrupt:
        return 130
    tell_the_page(answer)
    return 0


def _taken(data: ImageData) -> list[Sample]:
    """Pictures spread over the split; one that cannot be read or is very large is left out."""
    total, taken = len(data.val), []
    for i in sorted({k * total // NUM_SAMPLES for k in range(NUM_SAMPLES)}):
        name = data.val.name(i).rpartition("/")[2]
        try:
            content = _encoded(data.val, i)
            png = thumbnail(content, name, PREVIEW_PX)
        except RingsideError:
            continue
        if len(content) > MAX_BYTES:
            continue
        labels = tuple(data.classes[k] for k in data.val.targets[i].nonzero()[0])
        taken.append(Sample(content, name, labels, png))
    return taken


def _encoded(split: ImageSplit, i: int) -> bytes:
    """The picture as it is encoded, or as PNG where the split holds pixels."""
    pixels = getattr(split, "pixels", None)
    if pixels is None:
        return split.read(i)
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(pixels(i)).save(content, "PNG")
    return content.getvalue()


if __name__ == "__main__":
    sys.exit(main())
