"""From encoded bytes to 8-bit RGB: one rule for training, evaluation and preview."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from ringside.errors import DataError
from ringside.words import say

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

MAX_PIXELS = 89_478_485  # 256 MiB as 24-bit RGB; from here on Pillow warns of a bomb

Fault = Literal[
    "empty", "no-image", "truncated", "damaged", "too-large", "grey-range", "unreadable"
]

# Content that is often found under the name of an image: how it begins, and its sentence.
_FOREIGN = (
    (re.compile(rb"\s*<(!doctype html|html|head|body)", re.I), "picture.is_html"),
    (re.compile(rb"version https://git-lfs"), "picture.is_lfs"),
    (re.compile(rb"....ftyp(heic|heix|hevc|mif1)", re.S), "picture.is_heic"),
    (re.compile(rb"\s*(<\?xml[^>]*>\s*)?<svg", re.I), "picture.is_svg"),
    (re.compile(rb"%PDF"), "picture.is_pdf"),
    (re.compile(rb"PK\x03\x04"), "picture.is_zip"),
)


class PictureError(DataError):
    """One picture that cannot be used: `code` for programs, `reason` is the sentence without name.

    Loader workers pickle it; `args` therefore holds the sentence alone.
    """

    code: Fault = "damaged"
    reason = ""

    @classmethod
    def about(cls, name: str, code: Fault, reason: str) -> PictureError:
        """The error with the sentence `name reason`."""
        error = cls(say("picture.about", name=name, reason=reason))
        error.code, error.reason = code, reason
        return error


def decode_rgb(data: bytes, name: str) -> NDArray[np.uint8]:
    """Decode one picture: uint8, shape `[height, width, 3]`, upright.

    The EXIF orientation is applied, transparency is laid on white, palettes and CMYK become RGB,
    and of an animation the first frame counts. 16-bit grey is scaled by 255 / 65535, float grey
    from the range 0 to 1; values beyond those ranges are refused, because any scale would be
    a guess.

    Raises `PictureError` with `name` and the reason when the data is empty, no image, cut off,
    damaged, or larger than `MAX_PIXELS`.
    """
    return to_rgb(load_image(data, name), name)


def load_image(data: bytes, name: str) -> Image:
    """The picture with all its pixels decoded, otherwise as it is stored."""
    from PIL import Image

    if not data:
        reason = say("picture.empty")
        raise PictureError.about(name, "empty", reason)
    with _said_in_a_sentence(data, name):
        image = Image.open(io.BytesIO(data))
        width, height = image.size
        if width * height <= MAX_PIXELS:
            image.load()
            return image
    raise PictureError.about(
        name,
        "too-large",
        say("picture.too_large", width=width, height=height, limit=MAX_PIXELS),
    )


def to_rgb(image: Image, name: str) -> NDArray[np.uint8]:
    """The pixels of a loaded picture by the rule of `decode_rgb`."""
    import numpy as np
    from PIL import ImageOps

    with _said_in_a_sentence(b"", name):
        ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I") or image.mode == "F":
        return _scaled_grey(image, name)
    return np.array(_on_white(image), dtype=np.uint8)


@contextmanager
def _said_in_a_sentence(data: bytes, name: str) -> Iterator[None]:
    from PIL import Image, UnidentifiedImageError

    try:
        yield
    except UnidentifiedImageError as error:
        raise PictureError.about(name, "no-image", _why_no_image(data)) from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        reason = say("picture.bomb", error=error, limit=MAX_PIXELS)
        raise PictureError.about(name, "too-large", reason) from error
    except MemoryError:
        raise
    except Exception as error:  # codecs raise SyntaxError, struct.error, IndexError and others
        code: Fault = "truncated" if "truncated" in str(error).lower() else "damaged"
        reason = say("picture.damaged", error=error)
        raise PictureError.about(name, code, reason) from error


def _why_no_image(data: bytes) -> str:
    for beginning, key in _FOREIGN:
        if beginning.match(data):
            return say(key)
    return say("picture.no_image", head=data[:12])


def _scaled_grey(image: Image, name: str) -> NDArray[np.uint8]:
    """Grey of more than 8 bits as RGB: 65535 (integers) or 1.0 (floats) becomes 255."""
    import numpy as np

    top = 1.0 if image.mode == "F" else 65535.0
    grey = np.asarray(image, dtype=np.float64)
    if not (grey.min() >= 0 and grey.max() <= top):  # also refuses NaN
        raise PictureError.about(
            name,
            "grey-range",
            say("picture.grey", low=grey.min(), high=grey.max(), mode=image.mode, top=top),
        )
    levels = np.rint(grey * (255 / top)).astype(np.uint8)
    return np.repeat(levels[:, :, None], 3, axis=2)


def _on_white(image: Image) -> Image:
    from PIL import Image

    if not image.has_transparency_data:
        return image if image.mode == "RGB" else image.convert("RGB")
    white = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")


def evaluation_crop(rgb: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """The largest square in the middle of a picture, resized to `[size, size, 3]`.

    Bilinear with antialiasing, the same for every picture, so evaluation has no randomness.
    """
    import numpy as np
    from PIL import Image

    height, width = rgb.shape[:2]
    side = min(height, width)
    left, top = (width - side) // 2, (height - side) // 2
    square = Image.fromarray(rgb).crop((left, top, left + side, top + side))
    return np.array(square.resize((size, size), Image.Resampling.BILINEAR), dtype=np.uint8)


def thumbnail(data: bytes, name: str, size: int = 96) -> bytes:
    """A preview of an encoded picture as PNG, `size` x `size` pixels, cut as in evaluation."""
    from PIL import Image

    encoded = io.BytesIO()
    Image.fromarray(evaluation_crop(decode_rgb(data, name), size)).save(encoded, "PNG")
    return encoded.getvalue()
