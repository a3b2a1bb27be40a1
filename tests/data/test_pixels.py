"""Decoding: one rule for every kind of picture, and a sentence for what is no picture."""

import io
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile, PngImagePlugin

from ringside.data import decode_rgb, evaluation_crop, thumbnail
from ringside.data import pixels as pixels_module
from ringside.data.pixels import PictureError
from ringside.errors import DataError

Encode = Callable[..., bytes]


def test_16_bit_ramp_keeps_its_range(encode: Encode) -> None:
    ramp = np.linspace(0, 65535, 256 * 64).round().astype(np.uint16).reshape(64, 256)
    rgb = decode_rgb(encode(Image.fromarray(ramp), "PNG"), "ramp.png")
    assert rgb.mean() == pytest.approx(127.5, abs=0.5)
    assert (rgb.min(), rgb.max()) == (0, 255)
    assert np.array_equal(rgb[..., 0], np.rint(ramp / 257))
    assert np.array_equal(rgb[..., 0], rgb[..., 2])


@pytest.mark.parametrize(
    ("values", "mode"),
    [(np.array([[0, 65535]], dtype=np.int32), "I"), (np.array([[0, 1]], dtype=np.float32), "F")],
)
def test_integer_and_float_grey_reach_from_black_to_white(
    encode: Encode, values: np.ndarray, mode: str
) -> None:
    image = Image.fromarray(values)
    assert image.mode == mode
    assert decode_rgb(encode(image, "TIFF"), "x.tif")[0, :, 0].tolist() == [0, 255]


@pytest.mark.parametrize(
    "values",
    [
        np.array([[0, 70000]], dtype=np.int32),
        np.array([[-1, 5]], dtype=np.int32),
        np.array([[0, 255]], dtype=np.float32),
        np.array([[0, np.nan]], dtype=np.float32),
    ],
)
def test_grey_without_a_known_scale_is_refused(encode: Encode, values: np.ndarray) -> None:
    with pytest.raises(DataError, match=r"scan.tif has grey values .* expected 0 to"):
        decode_rgb(encode(Image.fromarray(values), "TIFF"), "scan.tif")


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA"])
def test_transparency_is_laid_on_white(encode: Encode, mode: str) -> None:
    clear_and_black = Image.new("RGBA", (2, 1), (0, 0, 0, 0))
    clear_and_black.putpixel((1, 0), (0, 0, 0, 255))
    image = clear_and_black.convert("P" if mode == "PA" else mode)
    if mode == "PA":
        image = clear_and_black.quantize(4)
    rgb = decode_rgb(encode(image, "PNG"), "x.png")
    assert rgb[0].tolist() == [[255, 255, 255], [0, 0, 0]]


def test_half_transparent_red_becomes_pink(encode: Encode) -> None:
    rgb = decode_rgb(encode(Image.new("RGBA", (1, 1), (255, 0, 0, 128)), "PNG"), "x.png")
    assert rgb[0, 0].tolist() == pytest.approx([255, 127, 127], abs=1)


@pytest.mark.parametrize(("mode", "kind"), [("CMYK", "JPEG"), ("L", "PNG"), ("1", "PNG")])
def test_other_modes_become_rgb(encode: Encode, mode: str, kind: str) -> None:
    white = Image.new("RGB", (4, 6), (255, 255, 255)).convert(mode)
    rgb = decode_rgb(encode(white, kind), "x")
    assert rgb.shape == (6, 4, 3)
    assert rgb.min() >= 250


def test_palette_becomes_its_colours(encode: Encode) -> None:
    image = Image.new("RGB", (4, 4), (10, 200, 30)).quantize(2)
    assert decode_rgb(encode(image, "GIF"), "x.gif")[0, 0].tolist() == [10, 200, 30]


def test_exif_orientation_is_applied(encode: Encode) -> None:
    lying = Image.new("RGB", (40, 20), (0, 0, 0))
    lying.paste((255, 255, 255), (0, 0, 20, 20))  # white on the left
    exif = Image.Exif()
    exif[0x0112] = 6  # turn 90 degrees clockwise to view
    rgb = decode_rgb(encode(lying, "JPEG", exif=exif.tobytes(), quality=95), "x.jpg")
    assert rgb.shape == (40, 20, 3)
    assert rgb[:15].mean() > 240
    assert rgb[25:].mean() < 15


def test_zero_bytes_html_and_cut_off_files_are_named(encode: Encode) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    whole = encode(Image.fromarray(noise))
    with pytest.raises(DataError, match=r"a\.jpg is empty"):
        decode_rgb(b"", "a.jpg")
    with pytest.raises(DataError, match=r"b\.jpg is not an image but an HTML page: fetch it again"):
        decode_rgb(b"<html><body>404</body></html>", "b.jpg")
    with pytest.raises(DataError, match=r"b\.jpg is not an image: it starts with b'hello'"):
        decode_rgb(b"hello", "b.jpg")
    with pytest.raises(DataError, match="Git LFS pointer: run `git lfs pull`"):
        decode_rgb(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "b.jpg")
    with pytest.raises(DataError, match=r"c\.jpg is damaged or cut off"):
        decode_rgb(whole[: len(whole) // 2], "c.jpg")
    assert decode_rgb(whole, "d.jpg").shape == (64, 64, 3)
    assert not ImageFile.LOAD_TRUNCATED_IMAGES


def test_a_fault_survives_the_way_back_from_a_loader_worker() -> None:
    with pytest.raises(PictureError) as caught:
        decode_rgb(b"", "a.jpg")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert (copy.code, copy.reason) == ("empty", "is empty (0 bytes): replace or remove the file.")


@given(share=st.floats(0.3, 0.95))
def test_a_cut_off_png_never_decodes(share: float) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (32, 32, 3), dtype=np.uint8)
    content = io.BytesIO()
    Image.fromarray(noise).save(content, "PNG")
    data = content.getvalue()
    with pytest.raises(DataError, match=r"cut\.png"):
        decode_rgb(data[: int(len(data) * share)], "cut.png")


@given(data=st.binary(min_size=1, max_size=200))
def test_random_bytes_are_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(DataError, match="junk"):
        decode_rgb(data, "junk")


def test_too_many_pixels_are_refused_before_decoding(
    encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pixels_module, "MAX_PIXELS", 99)
    assert decode_rgb(encode(Image.new("RGB", (9, 11))), "x").shape == (11, 9, 3)
    with pytest.raises(DataError, match=r"bomb\.png has 10 x 10 pixels"):
        decode_rgb(encode(Image.new("RGB", (10, 10))), "bomb.png")


def test_a_decompression_bomb_is_refused() -> None:
    """A header of 20,000 x 20,000 pixels in a few bytes."""
    ihdr = (20_000).to_bytes(4, "big") * 2 + bytes([8, 2, 0, 0, 0])
    content = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    content.seek(0, io.SEEK_END)
    PngImagePlugin.putchunk(content, b"IHDR", ihdr)
    PngImagePlugin.putchunk(content, b"IDAT", b"")
    with pytest.raises(DataError, match=r"bomb\.png is too large to decode"):
        decode_rgb(content.getvalue(), "bomb.png")


@pytest.mark.parametrize("shape", [(30, 90), (90, 30), (7, 7), (200, 201)])
def test_evaluation_crop_takes_the_centre(shape: tuple[int, int]) -> None:
    height, width = shape
    rgb = np.zeros((height, width, 3), dtype=np.uint8)
    side = min(shape)
    top, left = (height - side) // 2, (width - side) // 2
    rgb[top : top + side, left : left + side] = 200
    crop = evaluation_crop(rgb, 24)
    assert crop.shape == (24, 24, 3)
    assert crop[2:-2, 2:-2].min() == 200


def test_thumbnail_is_a_square_png(encode: Encode) -> None:
    preview = Image.open(io.BytesIO(thumbnail(encode(Image.new("L", (50, 20), 77)), "x", 48)))
    assert (preview.format, preview.size, preview.getpixel((5, 5))) == ("PNG", (48, 48), (77,) * 3)
