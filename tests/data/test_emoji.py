"""The shipped emoji set and the rules it was built by."""

import io
import re
import time

import numpy as np
import pytest
from PIL import Image, ImageDraw

from ringside.data import decode_rgb, open_data, parse_data
from ringside.data.emoji.build import (
    CATEGORIES,
    FACES_AND_FIGURES,
    REPEATED_CLOCKS,
    Emoji,
    build_rows,
    choose_val_codes,
)
from ringside.data.emoji.colours import COLOURS, colours_of
from ringside.data.images import ImageData, ImageSplit
from ringside.errors import DataError


@pytest.fixture(scope="module")
def emoji() -> ImageData:
    return open_data(parse_data("emoji"))


def codes(split: ImageSplit) -> list[str]:
    return [split.name(i).split()[1] for i in range(len(split))]


def test_size_and_labels(emoji: ImageData) -> None:
    assert (len(emoji.train), len(emoji.val), len(emoji.classes)) == (1316, 320, 53)
    assert set(COLOURS) | CATEGORIES <= set(emoji.classes)
    assert re.match(r"emoji [0-9A-F-]+ .+ \((fluent|noto)\)$", emoji.train.name(0))


def test_no_emoji_is_in_both_splits(emoji: ImageData) -> None:
    assert not set(codes(emoji.train)) & set(codes(emoji.val))


def test_every_label_has_positives_and_negatives_in_both_splits(emoji: ImageData) -> None:
    for split in (emoji.train, emoji.val):
        support = split.targets.sum(axis=0)
        assert support.min() >= 3
        assert support.max() < len(split)


def test_every_picture_has_exactly_one_category(emoji: ImageData) -> None:
    columns = [emoji.classes.index(category) for category in CATEGORIES]
    for split in (emoji.train, emoji.val):
        assert (split.targets[:, columns].sum(axis=1) == 1).all()


def test_no_flags_people_faces_or_repeated_clocks(emoji: ImageData) -> None:
    shown = set(codes(emoji.train)) | set(codes(emoji.val))
    assert not shown & (FACES_AND_FIGURES | REPEATED_CLOCKS)
    assert not [code for code in shown if re.search("1F1[EF]|1F3F[B-F]|1F46[6-9]", code)]


def test_all_pictures_decode_to_64_pixels(emoji: ImageData) -> None:
    for split in (emoji.train, emoji.val):
        for i in range(0, len(split), 37):
            assert decode_rgb(split.read(i), split.name(i)).shape == (64, 64, 3)


def test_a_known_emoji_has_its_labels(emoji: ImageData) -> None:
    apple = next(i for i in range(len(emoji.train)) if "red apple (fluent)" in emoji.train.name(i))
    labels = {emoji.classes[k] for k in np.flatnonzero(emoji.train.targets[apple])}
    assert {"Food & Drink", "food-fruit", "red"} <= labels


def test_opening_is_quick(emoji: ImageData) -> None:
    start_s = time.process_time()
    open_data(emoji.spec)
    assert time.process_time() - start_s < 0.5


@pytest.mark.parametrize(
    ("rgb", "colour"),
    [
        ((220, 20, 30), "red"),
        ((250, 140, 20), "orange"),
        ((250, 220, 30), "yellow"),
        ((40, 160, 50), "green"),
        ((40, 190, 200), "cyan"),
        ((40, 90, 220), "blue"),
        ((140, 60, 200), "purple"),
        ((250, 120, 180), "pink"),
        ((110, 65, 30), "brown"),
        ((20, 20, 22), "black"),
        ((245, 245, 245), "white"),
        ((140, 140, 140), "grey"),
    ],
)
def test_colour_of_a_plain_drawing(rgb: tuple[int, int, int], colour: str) -> None:
    assert colours_of(Image.new("RGBA", (8, 8), (*rgb, 255))) == [colour]


def test_a_colour_counts_from_18_percent_of_the_opaque_pixels() -> None:
    drawing = Image.new("RGBA", (10, 10), (0, 0, 255, 0))
    draw = ImageDraw.Draw(drawing)
    draw.rectangle((0, 0, 9, 4), fill=(255, 0, 0, 255))  # 50 opaque pixels
    draw.rectangle((0, 0, 8, 0), fill=(0, 200, 0, 255))  # 9 of them: exactly 18 %
    assert colours_of(drawing) == ["red"]
    draw.point((9, 0), fill=(0, 200, 0, 255))
    assert colours_of(drawing) == ["red", "green"]


def drawn(code: str, subcategory: str) -> Emoji:
    content = io.BytesIO()
    Image.new("RGBA", (64, 64), (220, 20, 30, 255)).save(content, "PNG")
    styles = {"fluent": content.getvalue(), "noto": content.getvalue()}
    return Emoji(code, f"thing {code}", "Objects", subcategory, styles)


def test_a_fifth_of_every_subcategory_validates_in_both_styles() -> None:
    emoji = [drawn(f"{i:X}", "tool" if i < 20 else "mail") for i in range(30)]
    assert len(choose_val_codes(emoji[:20])) == 4
    rows = build_rows(emoji)
    val = [row for row in rows if row.split == "val"]
    assert len(val) == 2 * (4 + 2)
    assert {row.style for row in val} == {"fluent", "noto"}
    assert rows == build_rows(emoji)


def test_small_subcategories_are_no_label() -> None:
    emoji = [drawn(f"{i:X}", "tool" if i < 9 else "lock") for i in range(16)]
    labels = {label for row in build_rows(emoji) for label in row.labels}
    assert labels == {"Objects", "tool", "red"}


def test_a_label_missing_in_one_split_stops_the_build() -> None:
    with pytest.raises(DataError, match="Objects"):
        build_rows([drawn("A1", "tool")])
