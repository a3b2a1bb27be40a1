"""Build ``emoji.parquet`` from two npm tarballs.

    npm pack @lobehub/fluent-emoji-3d@1.1.0
    npm pack emoji-datasource-google@16.0.0
    python -m ringside.data.emoji.build --fluent lobehub-fluent-emoji-3d-1.1.0.tgz \\
        --google emoji-datasource-google-16.0.0.tgz

Every picture carries its category, its subcategory when that has enough emoji, and its colours.
Both drawings of one emoji stay in the same split: the validation split holds only emoji whose
other drawing the model has not seen either.
"""

from __future__ import annotations

import argparse
import io
import json
import tarfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from ringside.data.emoji.colours import colours_of
from ringside.errors import DataError

if TYPE_CHECKING:
    from PIL.Image import Image

CATEGORIES = frozenset(
    {"Food & Drink", "Objects", "Animals & Nature", "Travel & Places", "Activities"}
)
# Drawn with a human face or figure although their category is not "People & Body".
FACES_AND_FIGURES = frozenset(
    {"1F31A", "1F31B", "1F31C", "1F31D", "1F31E", "1F32C"}  # moons, sun and wind with a face
    | {"1F38E", "1FA86", "1F3AD"}  # Japanese dolls, nesting dolls, theatre masks
    | {"1F5FF", "1FAAA", "1F5FD"}  # moai, identity card, Statue of Liberty
)
# 24 clocks differ only in their hands: one in train would give away another in validation.
REPEATED_CLOCKS = frozenset(f"{code:X}" for code in range(0x1F551, 0x1F568))

SIZE_PX = 64
GROUND_RGB = (238, 240, 244)  # plain and light, yet white objects stay visible on it
WEBP_QUALITY = 92
MIN_EMOJI_PER_SUBCATEGORY = 8  # so that 20 % are at least two emoji
VAL_RATIO = 0.2
SEED = 0


@dataclass(frozen=True)
class Emoji:
    """One code point sequence with its drawings, ``{style: encoded picture}``."""

    code: str
    name: str
    category: str
    subcategory: str
    drawings: dict[str, bytes] = field(repr=False)


@dataclass(frozen=True)
class Row:
    """One picture, as stored in the file."""

    name: str
    code: str
    style: str
    split: str
    labels: list[str]
    image: bytes


def main() -> None:
    """Command line: two tarballs in, one Parquet file out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fluent", type=Path, required=True, help="Fluent 3D tarball")
    parser.add_argument("--google", type=Path, required=True, help="Noto pictures and emoji.json")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("emoji.parquet"))
    arguments = parser.parse_args()
    rows = build_rows(read_emoji(arguments.fluent, arguments.google))
    write_rows(rows, arguments.out)
    counts = Counter(row.split for row in rows)
    num_labels = len({label for row in rows for label in row.labels})
    size_bytes = arguments.out.stat().st_size
    print(f"{arguments.out}: {dict(counts)}, {num_labels} labels, {size_bytes:,} bytes")


def read_emoji(fluent: Path, google: Path) -> list[Emoji]:
    """The kept emoji in code point order, each with the drawings that exist for it."""
    drawings: dict[str, dict[str, bytes]] = defaultdict(dict)
    for style, tarball, folder in (
        ("fluent", fluent, "package/assets/"),
        ("noto", google, "package/img/google/64/"),
    ):
        for path, content in _read_members(tarball, folder):
            drawings[_plain_code(Path(path).stem)][style] = content
    ((_, table),) = _read_members(google, "package/emoji.json")
    emoji = (_as_emoji(entry, drawings) for entry in json.loads(table))
    return sorted((one for one in emoji if _is_kept(one)), key=lambda one: one.code)


def _read_members(tarball: Path, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    with tarfile.open(tarball) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.name.startswith(prefix) else None
            if content is not None:
                found.append((member.name, content.read()))
    if not found:
        raise DataError(f"{tarball} holds no {prefix}: pass the tarball that `npm pack` wrote.")
    return found


def _plain_code(code: str) -> str:
    """Upper case and without the variation selector, which the two packages use differently."""
    return code.upper().replace("-FE0F", "")


def _as_emoji(entry: dict[str, Any], drawings: dict[str, dict[str, bytes]]) -> Emoji:
    code = _plain_code(entry["unified"])
    return Emoji(
        code=code,
        name=entry["name"].lower(),
        category=entry["category"],
        subcategory=entry["subcategory"],
        drawings=drawings.get(code, {}),
    )


def _is_kept(emoji: Emoji) -> bool:
    left_out = FACES_AND_FIGURES | REPEATED_CLOCKS
    return emoji.category in CATEGORIES and emoji.code not in left_out and bool(emoji.drawings)


def build_rows(emoji: list[Emoji]) -> list[Row]:
    """All pictures with split and labels, in code point and style order.

    Raises ``DataError`` when a label has no picture in one of the splits.
    """
    counts = Counter(one.subcategory for one in emoji)
    labelled = {name for name, count in counts.items() if count >= MIN_EMOJI_PER_SUBCATEGORY}
    val_codes = choose_val_codes(emoji)
    rows = []
    for one in emoji:
        split = "val" if one.code in val_codes else "train"
        taxonomy = [one.category, *([one.subcategory] if one.subcategory in labelled else [])]
        for style, content in sorted(one.drawings.items()):
            drawing = _at_size(content)
            labels = taxonomy + colours_of(drawing)
            rows.append(Row(one.name, one.code, style, split, labels, _encode(drawing)))
    _require_all_labels_in_both_splits(rows)
    return rows


def choose_val_codes(emoji: list[Emoji]) -> set[str]:
    """A seeded fifth of every subcategory (rounded, at least one emoji)."""
    random = Random(SEED)
    by_subcategory: dict[str, list[str]] = defaultdict(list)
    for one in emoji:
        by_subcategory[one.subcategory].append(one.code)
    chosen: set[str] = set()
    for _, codes in sorted(by_subcategory.items()):
        # Of `random`, only the sequence of .random() is promised to stay the same.
        shuffled = [code for _, code in sorted((random.random(), code) for code in codes)]
        chosen.update(shuffled[: max(1, round(VAL_RATIO * len(codes)))])
    return chosen


def _at_size(content: bytes) -> Image:
    from PIL import Image

    drawing = Image.open(io.BytesIO(content)).convert("RGBA")
    return drawing.resize((SIZE_PX, SIZE_PX), Image.Resampling.LANCZOS)


def _encode(drawing: Image) -> bytes:
    from PIL import Image

    ground = Image.new("RGBA", drawing.size, (*GROUND_RGB, 255))
    encoded = io.BytesIO()
    flat = Image.alpha_composite(ground, drawing).convert("RGB")
    flat.save(encoded, "WEBP", quality=WEBP_QUALITY, method=6)
    return encoded.getvalue()


def _require_all_labels_in_both_splits(rows: list[Row]) -> None:
    found = {
        split: {label for row in rows if row.split == split for label in row.labels}
        for split in ("train", "val")
    }
    one_sided = sorted(found["train"] ^ found["val"])
    if one_sided:
        raise DataError(f"No picture in one of the splits for {one_sided}: choose another seed.")


def write_rows(rows: list[Row], path: Path) -> None:
    """One Parquet file; the pictures are compressed already, so only the rest is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(row, name) for row in rows] for name in Row.__dataclass_fields__}
    compression = {name: "none" if name == "image" else "zstd" for name in columns}
    pq.write_table(pa.table(columns), path, compression=compression, use_dictionary=False)


if __name__ == "__main__":
    main()
