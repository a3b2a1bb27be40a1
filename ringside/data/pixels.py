"""From encoded bytes to 8-bit RGB: one rule for training, evaluation and preview."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ringside.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

MAX_PIXELS = 89_478_485  # 256 MiB as 24-bit RGB; from here on Pillow warns of a bomb


def decode_rgb(data: bytes, name: str) -> NDArray[np.uint8]:
    """Decode one picture: uint8, shape `[height, width, 3]`, upright.

    The EXIF orientation is applied, transparency is laid on white, palettes and CMYK become RGB,
    and of an animation the first frame counts. 16-bit grey is scaled by 255 / 65535, float grey
    from the range 0 to 1; values beyond those ranges are refused, because any scale would be
    a guess.

    Raises `DataError` with `name` and the reason when the data is empty, no image, cut off,
    damaged, or larger than `MAX_PIXELS`.
    """
    import numpy as np

    if not data:
        raise DataError(f"{name} is empty (0 bytes): replace or remove the file.")
    image = _open_upright(data, name)
    if image.mode.startswith("I") or image.mode == "F":
        return _scaled_grey(image, name)
    return np.array(_on_white(image), dtype=np.uint8)


def _open_upright(data: bytes, name: str) -> Image:
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        image = Image.open(io.BytesIO(data))
        width, height = image.size
        if width * height <= MAX_PIXELS:
            image.load()
            ImageOps.exif_transpose(image, in_place=True)
    except UnidentifiedImageError as error:
        raise DataError(f"{name} is not an image: it starts with {data[:12]!r}.") from error
    except Image.DecompressionBombError as error:
        raise DataError(f"{name} is too large to decode: {error}") from error
    except MemoryError:
        raise
    except Exception as error:  # codecs raise SyntaxError, struct.error, IndexError and others
        raise DataError(f"{name} is damaged or cut off ({error}): replace the file.") from error
    if width * height > MAX_PIXELS:
        raise DataError(
            f"{name} has {width} x {height} pixels, more than the limit of {MAX_PIXELS:,}: "
            "make it smaller."
        )
    return image


def _scaled_grey(image: Image, name: str) -> NDArray[np.uint8]:
    """Grey of more than 8 bits as RGB: 65535 (integers) or 1.0 (floats) becomes 255."""
    import numpy as np

    top = 1.0 if image.mode == "F" else 65535.0
    grey = np.asarray(image, dtype=np.float64)
    if not (grey.min() >= 0 and grey.max() <= top):  # also refuses NaN
        raise DataError(
            f"{name} has grey values from {grey.min():g} to {grey.max():g} (mode {image.mode}), "
            f"expected 0 to {top:g}: save it as 8 or 16 bit."
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
    """The centre square of a picture, `[size, size, 3]`: short side to `size`, then cut.

    Bilinear with antialiasing, the same for every picture, so evaluation has no randomness.
    """
    import numpy as np
    from PIL import Image

    height, width = rgb.shape[:2]
    short = min(height, width)
    new_width, new_height = (max(size, round(side * size / short)) for side in (width, height))
    resized = Image.fromarray(rgb).resize((new_width, new_height), Image.Resampling.BILINEAR)
    left, top = (new_width - size) // 2, (new_height - size) // 2
    return np.array(resized.crop((left, top, left + size, top + size)), dtype=np.uint8)


def thumbnail(data: bytes, name: str, size: int = 96) -> bytes:
    """A preview of an encoded picture as PNG, `size` x `size` pixels, cut as in evaluation."""
    from PIL import Image

    encoded = io.BytesIO()
    Image.fromarray(evaluation_crop(decode_rgb(data, name), size)).save(encoded, "PNG")
    return encoded.getvalue()
