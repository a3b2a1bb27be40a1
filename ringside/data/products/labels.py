"""What a synthetic picture shows: 100 labels in seven families, drawn from a seed and an index.

Python promises that `random.Random(n).random()` gives the same sequence in every version, and
promises it for no other method. Labels are drawn through that method alone, so they are the same
everywhere; numpy decides pixels only.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import TypeVar

T = TypeVar("T")

CATEGORIES_OF_DEPARTMENT = {
    "kitchenware": ("mug", "bottle", "pan", "bowl", "teapot"),
    "clothing": ("t-shirt", "dress", "trousers", "shoe", "hat"),
    "accessories": ("handbag", "backpack", "umbrella", "watch", "glasses"),
    "furniture": ("chair", "table", "sofa", "lamp", "shelf"),
    "electronics": ("phone", "laptop", "headphones", "camera", "speaker"),
    "leisure": ("ball", "racket", "skateboard", "kite", "dumbbell"),
    "garden": ("potted plant", "watering can", "shovel", "birdhouse", "lantern"),
    "stationery": ("book", "carton", "pencil", "envelope", "scissors"),
}
DEPARTMENT_OF_CATEGORY = {
    category: department
    for department, categories in CATEGORIES_OF_DEPARTMENT.items()
    for category in categories
}
# From frequent to rare, turn by turn from every department, so that no department is rare.
CATEGORIES = tuple(
    categories[turn] for turn in range(5) for categories in CATEGORIES_OF_DEPARTMENT.values()
)
COLOURS = (
    *("red", "orange", "yellow", "green", "teal", "blue", "navy"),
    *("purple", "pink", "brown", "beige", "black", "white", "grey"),
)
PATTERNS = (
    *("plain", "horizontal stripes", "vertical stripes", "diagonal stripes", "dots", "checks"),
    *("grid", "zigzag", "waves", "diamonds", "rings", "camouflage"),
)
MATERIALS = ("matte", "glossy", "metal", "wood", "leather", "knit", "glass", "plush")
BACKGROUNDS = (
    *("white ground", "grey studio", "spotlight", "pastel wall"),
    *("wooden table", "marble", "concrete", "night"),
)
ATTRIBUTE_RATIOS = {
    "sale badge": 0.20,
    "brand logo": 0.25,
    "hang tag": 0.15,
    "multipack": 0.12,
    "gift ribbon": 0.12,
    "strong shadow": 0.20,
    "close-up": 0.20,
    "price banner": 0.15,
    "framed": 0.10,
    "tilted": 0.25,
}
PLAIN_RATIO = 0.35
SECOND_COLOUR_RATIO = 0.4  # of the plain ones: the accent part has a colour of its own


@dataclass(frozen=True)
class Profile:
    """A kind of product set: how many images and which labels.

    Every `val_every`th image validates. `sides_px`: shortest and longest side, drawn per image;
    None means that pictures are drawn at the image size asked for. An empty family has no labels
    and shows its first member; a single member is no label either.
    """

    num_images: int
    val_every: int
    image_size: int
    categories: tuple[str, ...] = CATEGORIES
    colours: tuple[str, ...] = COLOURS
    patterns: tuple[str, ...] = PATTERNS
    materials: tuple[str, ...] = MATERIALS
    backgrounds: tuple[str, ...] = BACKGROUNDS
    attributes: tuple[str, ...] = tuple(ATTRIBUTE_RATIOS)
    has_departments: bool = True
    sides_px: tuple[int, int] | None = None


PROFILE_OF = {
    "demo": Profile(num_images=4000, val_every=5, image_size=64),
    "ci": Profile(
        num_images=960,
        val_every=3,
        image_size=32,
        categories=("mug", "t-shirt", "umbrella", "chair", "ball", "carton"),
        colours=("red", "yellow", "green", "blue", "black", "purple"),
        patterns=("plain",),
        materials=("matte",),
        backgrounds=("white ground", "wooden table", "night", "grey studio"),
        attributes=(),
        has_departments=False,
    ),
    "bench": Profile(num_images=20_000, val_every=10, image_size=224, sides_px=(300, 800)),
}


@dataclass(frozen=True)
class Scene:
    """One picture to draw; one or two `colours`, of body and then of pattern or accent."""

    category: str
    colours: tuple[str, ...]
    pattern: str
    material: str
    background: str
    attributes: tuple[str, ...]


def draw_scene(profile: Profile, seed: int, index: int) -> tuple[Scene, tuple[str, ...]]:
    """Picture `index` of the set with this seed, and its labels."""
    random = Random((seed << 40) + index)
    category = _choose_ranked(profile.categories, random)
    pattern = profile.patterns[0]
    if len(profile.patterns) > 1 and random.random() >= PLAIN_RATIO:
        pattern = _choose(profile.patterns[1:], random)
    first = _choose(profile.colours, random)
    has_second = pattern != "plain" or random.random() < SECOND_COLOUR_RATIO
    others = [colour for colour in profile.colours if colour != first]
    is_varied = len(profile.patterns) > 1
    scene = Scene(
        category=category,
        colours=(first, _choose(others, random)) if has_second and is_varied else (first,),
        pattern=pattern,
        material=_choose(profile.materials, random),
        background=_choose(profile.backgrounds, random),
        attributes=tuple(
            name for name in profile.attributes if random.random() < ATTRIBUTE_RATIOS[name]
        ),
    )
    return scene, _labels(profile, scene)


def class_names(profile: Profile) -> tuple[str, ...]:
    """Every label of the profile, whether or not a small set shows it; in code point order."""
    names = [*profile.categories, *profile.colours, *profile.attributes]
    for family in (profile.patterns, profile.materials, profile.backgrounds):
        names += family if len(family) > 1 else ()
    if profile.has_departments:
        names += {DEPARTMENT_OF_CATEGORY[category] for category in profile.categories}
    return tuple(sorted(names))


def side_px(profile: Profile, seed: int, index: int) -> int:
    """The side of picture `index` of a set whose pictures differ in size."""
    low, high = profile.sides_px or (profile.image_size, profile.image_size)
    return low + int(Random((seed << 40) + (1 << 39) + index).random() * (high - low + 1))


def is_val(profile: Profile, index: int) -> bool:
    """Whether picture `index` validates."""
    return index % profile.val_every == 0


def _labels(profile: Profile, scene: Scene) -> tuple[str, ...]:
    labels = [scene.category, *scene.colours, *scene.attributes]
    if profile.has_departments:
        labels.append(DEPARTMENT_OF_CATEGORY[scene.category])
    for family, value in (
        (profile.patterns, scene.pattern),
        (profile.materials, scene.material),
        (profile.backgrounds, scene.background),
    ):
        labels += [value] if len(family) > 1 else []
    return tuple(labels)


def _choose(options: Sequence[T], random: Random) -> T:
    return options[int(random.random() * len(options))]


def _choose_ranked(options: Sequence[T], random: Random) -> T:
    """The option of rank r with a probability proportional to r ** -0.6."""
    limits = list(accumulate(rank**-0.6 for rank in range(1, len(options) + 1)))
    return options[bisect(limits, random.random() * limits[-1])]
