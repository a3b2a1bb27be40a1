"""Synthetic pictures: fixed labels, reproducible pixels, complete files."""

import hashlib
import io
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ringside.data import decode_rgb, make_data, open_data, parse_data
from ringside.data.products import files, labels
from ringside.data.products.labels import PROFILE_OF, class_names, draw_scene
from ringside.data.products.render import render_jpeg
from ringside.data.products.shapes import SHAPES
from ringside.errors import DataError

DEMO = PROFILE_OF["demo"]
EXPECTED_LABELS_SHA256 = "e29299391ae0f7a85c5fef70ecffe07eec0127852934bb5720b88535893a6e42"
EXPECTED_MEANS_RGB = [[126.5, 125.2, 121.3], [155.5, 157.3, 139.7], [178.6, 182.5, 169.6]]


def test_a_hundred_labels_in_seven_families() -> None:
    assert len(class_names(DEMO)) == 100
    families = (
        *(labels.CATEGORIES, labels.CATEGORIES_OF_DEPARTMENT, labels.COLOURS, labels.PATTERNS),
        *(labels.MATERIALS, labels.BACKGROUNDS, labels.ATTRIBUTE_RATIOS),
    )
    assert [len(family) for family in families] == [40, 8, 14, 12, 8, 8, 10]
    assert set(SHAPES) == set(labels.CATEGORIES)


@pytest.mark.parametrize(
    ("name", "num_train", "num_val", "num_classes"),
    [("products:ci", 640, 320, 16), ("products:demo", 3200, 800, 100)],
)
def test_profiles_have_their_sizes_and_every_label_in_both_splits(
    name: str, num_train: int, num_val: int, num_classes: int
) -> None:
    data = open_data(parse_data(name))
    assert (len(data.train), len(data.val), len(data.classes)) == (num_train, num_val, num_classes)
    assert data.synthetic
    assert "ynthetic" in data.title
    for split in (data.train, data.val):
        support = split.targets.sum(axis=0)
        assert support.min() >= 5
        assert support.max() < len(split)


def test_labels_never_change() -> None:
    """Labels come from `random.Random.random()` alone; another hash means other labels for all."""
    drawn = "\n".join(";".join(draw_scene(DEMO, 0, i)[1]) for i in range(500))
    assert hashlib.sha256(drawn.encode()).hexdigest() == EXPECTED_LABELS_SHA256


def test_pixels_stay_about_the_same() -> None:
    """Other versions of numpy or Pillow may move single pixels, not the picture."""
    means = [decoded(i, 64).mean(axis=(0, 1)) for i in range(3)]
    assert np.array(means) == pytest.approx(np.array(EXPECTED_MEANS_RGB), abs=2)


def decoded(index: int, size: int) -> np.ndarray:
    return decode_rgb(jpeg(index, size), str(index))


def jpeg(index: int, size: int = 64) -> bytes:
    return render_jpeg(draw_scene(DEMO, 0, index)[0], size, 0, index)


def test_any_worker_in_any_order_draws_the_same_bytes() -> None:
    here = [jpeg(i) for i in range(6)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        there = list(pool.map(jpeg, reversed(range(6))))
    assert there[::-1] == here
    assert len(set(here)) == 6


@pytest.mark.parametrize("size", [32, 64, 100, 300])
def test_pictures_have_the_size_asked_for(size: int) -> None:
    picture = Image.open(io.BytesIO(jpeg(7, size)))
    assert (picture.format, picture.size) == ("JPEG", (size, size))


@pytest.mark.parametrize(
    "change",
    [
        *({"material": name} for name in labels.MATERIALS[1:]),
        *({"pattern": name} for name in labels.PATTERNS[1:]),
        *({"background": name} for name in labels.BACKGROUNDS[1:]),
        *({"attributes": (name,)} for name in labels.ATTRIBUTE_RATIOS),
        *({"category": name} for name in labels.CATEGORIES if name != "carton"),
    ],
    ids=str,
)
def test_every_label_is_visible_at_64_pixels(change: dict[str, object]) -> None:
    base = {"category": "carton", "colours": ("red", "white"), "pattern": "plain",
            "material": "matte", "background": "white ground", "attributes": ()}  # fmt: skip
    pictures = [
        decode_rgb(render_jpeg(labels.Scene(**parts), 64, 0, 3), "x").astype(float)
        for parts in (base, base | change)
    ]
    difference = np.abs(pictures[0] - pictures[1]).max(axis=2)
    assert (difference > 25).mean() > 0.02  # of the pixels, clearly above noise and coding


def test_written_files_hold_the_drawn_pictures_and_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SHARD_IMAGES", 10)
    calls: list[tuple[int, int]] = []
    out = make_data(
        "ci", tmp_path / "set", num_images=45, workers=1,
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    assert calls == [(10, 45), (20, 45), (30, 45), (40, 45), (45, 45)]
    spec = parse_data(str(out))
    assert spec.source == "products"
    written, drawn = open_data(spec), open_data(parse_data("products:ci"))
    assert written.synthetic
    assert (len(written.train), len(written.val)) == (30, 15)
    by_name = {written.train.name(i).rsplit("/")[-1]: i for i in range(30)}
    for i in range(30):
        index = int(drawn.train.name(i).rsplit(" ")[-1])
        k = by_name[f"{index:07d}.jpg"]
        assert written.train.read(k) == drawn.train.read(i)
        there = {written.classes[c] for c in np.flatnonzero(written.train.targets[k])}
        assert there == {drawn.classes[c] for c in np.flatnonzero(drawn.train.targets[i])}


def test_imagefolder_of_datasets_reads_the_layout(tmp_path: Path) -> None:
    from datasets import load_dataset

    out = make_data("ci", tmp_path / "set", num_images=12, workers=1)
    loaded = load_dataset("imagefolder", data_dir=str(out), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in loaded.items()} == {"train": 8, "validation": 4}
    assert loaded["train"][0]["image"].size == (32, 32)
    assert list(loaded["train"][0]["labels"]) == list(draw_scene(PROFILE_OF["ci"], 0, 1)[1])


def test_a_stopped_run_goes_on_where_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SHARD_IMAGES", 10)

    def stop_after_two(done: int, total: int) -> None:
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_data("ci", tmp_path / "set", num_images=60, workers=1, progress=stop_after_two)
    with pytest.raises(DataError, match="not finished"):
        open_data(parse_data(str(tmp_path / "set")))
    finished = tmp_path / "set" / "train" / "shard-00000"
    before_ns = finished.stat().st_mtime_ns
    calls: list[int] = []
    make_data("ci", tmp_path / "set", num_images=60, workers=1,
              progress=lambda done, _total: calls.append(done))  # fmt: skip
    assert calls[0] == 30
    assert finished.stat().st_mtime_ns == before_ns
    whole = make_data("ci", tmp_path / "whole", num_images=60, workers=1)
    assert content_of(tmp_path / "set") == content_of(whole)


def content_of(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_another_set_in_the_folder_is_never_overwritten(tmp_path: Path) -> None:
    out = make_data("ci", tmp_path / "set", num_images=12, workers=1)
    with pytest.raises(DataError, match="seed 0 there, 1 asked for"):
        make_data("ci", out, num_images=12, seed=1, workers=1)
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(DataError, match="not empty and holds no product set"):
        make_data("ci", tmp_path, num_images=12, workers=1)


@pytest.mark.parametrize(
    ("profile", "num_images", "message"),
    [("dem", None, "no profile 'dem'.*'demo'"), ("ci", 2, "2 images leave no split")],
)
def test_impossible_sets_are_refused(
    tmp_path: Path, profile: str, num_images: int | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        make_data(profile, tmp_path / "set", num_images=num_images)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match=r"Writing to .* failed"):
        make_data("ci", tmp_path / "file" / "set", num_images=12, workers=1)


def test_workers_write_the_same_files(tmp_path: Path) -> None:
    one = make_data("ci", tmp_path / "one", num_images=30, workers=1)
    two = make_data("ci", tmp_path / "two", num_images=30, workers=2)
    assert content_of(one) == content_of(two)


def test_the_bench_profile_has_pictures_of_many_sizes() -> None:
    data = open_data(parse_data("products:bench"))
    sides = {Image.open(io.BytesIO(data.train.read(i))).width for i in range(6)}
    assert len(sides) > 3
    assert min(sides) >= 300
    assert max(sides) <= 800
