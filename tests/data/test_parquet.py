"""Parquet files with the pictures in them, as data sets of the Hub lie on a disk."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from ringside.data import check_data, decode_rgb, open_data, parse_data
from ringside.data.discovery import count_training
from ringside.data.hub import files
from ringside.data.images import ImageData
from ringside.errors import DataError, NoImagesError

LABELS = ["dog", "cat"]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets.disable_progress_bars()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


def jpeg(i: int) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (12, 10), (i * 7 % 256, i * 13 % 256, 90)).save(content, "JPEG")
    return content.getvalue()


def structs(numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [{"bytes": jpeg(i), "path": f"{i}.jpg"} for i in numbers]


def write(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def opened(path: Path, **how: Any) -> ImageData:
    return open_data(parse_data(str(path), **how))


def shown(data: ImageData) -> dict[str, tuple[list[str], tuple[int, ...]]]:
    """By name: labels, and the pixel in the middle of what is decoded."""
    return {
        split.name(i).removeprefix(f"{data.spec.path}/"): (
            [data.classes[k] for k in np.flatnonzero(split.targets[i])],
            tuple(np.asarray(decode_rgb(split.read(i), split.name(i)))[5, 6].tolist()),
        )
        for split in (data.train, data.val)
        for i in range(len(split))
    }


def expected(numbers: Sequence[int], labels: Sequence[str]) -> list[tuple[list[str], Any]]:
    decoded = (Image.open(io.BytesIO(jpeg(i))) for i in numbers)
    return [([label], image.getpixel((6, 5))) for label, image in zip(labels, decoded, strict=True)]


@pytest.mark.parametrize("features", [True, False])
def test_shards_as_the_hub_lays_them_out(tmp_path: Path, features: bool) -> None:
    """With the names of classes that `datasets` writes into a file, and without."""
    root = tmp_path / "pets [v1]*"
    kinds = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=LABELS)}
    )
    names = ("train-00000-of-00002", "train-00001-of-00002", "validation-00000-of-00001")
    for shard, name in enumerate(names):
        numbers = range(10 * shard, 10 * shard + 4)
        rows = {"image": structs(numbers), "label": [0, 1, 0, 1]}
        path = root / "data" / f"{name}.parquet"
        if features:
            path.parent.mkdir(parents=True, exist_ok=True)
            datasets.Dataset.from_dict(rows, features=kinds).to_parquet(path)
        else:
            write(path, **rows)
    data = opened(root)
    label = LABELS if features else ["0", "1"]
    numbers = [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23]
    found = shown(data)
    assert list(found) == [
        *(f"train/{i}" for i in range(8)),
        *(f"validation/{i}" for i in range(4)),
    ]
    assert list(found.values()) == expected(numbers, label * 6)
    assert (data.task, len(data.train), len(data.val)) == ("single_label", 8, 4)
    report = check_data(data.spec)
    assert (report.num_files, report.num_usable, report.bad) == (12, 12, ())
    assert report.layout.startswith("Parquet, 3 files, images in column image")


def test_one_file_with_bytes_alone_is_split_like_a_table(tmp_path: Path) -> None:
    numbers = range(10)
    path = write(
        tmp_path / "validation.parquet",
        image_bytes=[jpeg(i) for i in numbers], tags=["a;b", "b"] * 5,
    )  # fmt: skip
    data = opened(path)
    assert (data.task, data.classes) == ("multi_label", ("a", "b"))
    assert (len(data.train), len(data.val)) == (8, 2)
    assert set(shown(data)) == {f"train/{i}" for i in numbers}
    assert opened(path, separator="none").classes == ("a;b", "b")
    assert shown(opened(path)) == shown(data)
    assert opened(tmp_path).fingerprint != ""
    assert opened(tmp_path).fingerprint == data.fingerprint


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    """Wherever the files lie, and although the copy in the cache is found again."""
    rows = {"image": structs(range(8)), "label": LABELS * 4}
    one, other = (
        write(tmp_path / "a" / "x.parquet", **rows),
        write(tmp_path / "b" / "x.parquet", **rows),
    )
    before = opened(one).fingerprint
    assert opened(other).fingerprint == before
    write(other, image=structs(range(1, 9)), label=LABELS * 4)
    assert opened(other).fingerprint != before


def test_of_large_files_the_footer_stands_for_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_HASHED_BYTES", 100)
    monkeypatch.setattr(files, "FOOTER_BYTES", 1_000)
    path = write(tmp_path / "x.parquet", image=structs(range(8)), label=LABELS * 4)
    before = files.identity_of([path])
    assert files.identity_of([path]) == before
    write(path, image=structs(range(8)), label=["dog", "bird"] * 4)
    assert files.identity_of([path]) != before


def test_splits_may_be_folders_and_others_are_left_out(tmp_path: Path) -> None:
    for name, numbers in (("train", range(6)), ("test", range(6, 10)), ("notes", range(2))):
        rows = {"image": structs(numbers), "label": (LABELS * 3)[: len(numbers)]}
        write(tmp_path / "default" / f"{name}" / "0000.parquet", **rows)
    with pytest.raises(DataError, match=r"several folders \(default, default/notes\)"):
        opened(tmp_path)
    (tmp_path / "default" / "notes" / "0000.parquet").rename(tmp_path / "default" / "notes.parquet")
    (tmp_path / "default" / "notes").rmdir()
    data = opened(tmp_path)
    assert (len(data.train), len(data.val)) == (6, 4)
    assert any("notes" in note for note in data.notes)


def test_bad_rows_are_named_and_can_be_left_out(tmp_path: Path) -> None:
    """D3 in a file; and a row that names a file of this machine does not get it."""
    rows = structs(range(10))
    rows[3] = {"bytes": b"oops", "path": None}
    rows[4] = {"bytes": None, "path": "/etc/hostname"}
    rows[5] = {"bytes": None, "path": None}
    path = write(tmp_path / "pets.parquet", image=rows, label=LABELS * 5)
    report = check_data(str(path))
    reasons = {bad.file: bad.reason for bad in report.bad}
    assert set(reasons) == {"train/3", "train/4", "train/5"}
    assert (
        reasons["train/4"]
        == "names '/etc/hostname', which is no part of the data: leave the row out."
    )
    assert report.num_usable == 7
    spec = parse_data(str(path))
    left = open_data(spec, skip=set(reasons))
    assert len(left.train) + len(left.val) == 7
    assert count_training(spec, 64) is None


def test_a_table_that_names_files_stays_one(tmp_path: Path) -> None:
    """A column of other bytes beside the names of files is no column of pictures."""
    for i in range(4):
        (tmp_path / f"{i}.jpg").write_bytes(jpeg(i))
    path = write(
        tmp_path / "pets.parquet", file_name=[f"{i}.jpg" for i in range(4)],
        embedding=[b"12"] * 4, label=LABELS * 2,
    )  # fmt: skip
    assert opened(path).spec.source == "folder"
    held = write(
        tmp_path / "held.parquet", file_name=[f"{i}.jpg" for i in range(4)],
        image=structs(range(4)), label=LABELS * 2,
    )  # fmt: skip
    assert opened(held).spec.source == "parquet"
    folders = ImageFolder(tmp_path / "photos")
    write(folders.root / "x.parquet", image=structs(range(2)), label=LABELS)
    assert opened(folders.root).spec.source == "folder"


class ImageFolder:
    """A folder per class."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for label in LABELS:
            (root / label).mkdir(parents=True)
            for i in range(3):
                (root / label / f"{i}.jpg").write_bytes(jpeg(i))


def test_files_that_differ_are_refused_with_their_columns(tmp_path: Path) -> None:
    write(tmp_path / "test-0.parquet", image=structs(range(4)), label=LABELS * 2)
    write(tmp_path / "train-0.parquet", image=structs(range(4)), tags=LABELS * 2)
    with pytest.raises(DataError, match=r"train-0.parquet has other columns \(image, tags\)"):
        opened(tmp_path)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", image=structs(range(4)), label=LABELS * 2)
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "train.parquet").symlink_to(path)
    with pytest.raises(NoImagesError):
        opened(tmp_path / "inside")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("x.parquet", r", or the table that lies there \(--data .*x\.parquet\)\."),
        ("photos.tar.gz", r", or unpack photos\.tar\.gz first\."),
        ("notes.txt", r"one folder per class\."),
    ],
)
def test_a_folder_without_images_names_what_lies_there(
    tmp_path: Path, name: str, hint: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_bytes(b"no table")
    with pytest.raises(NoImagesError, match=hint):
        opened(tmp_path / "data")


def test_a_file_that_changes_under_way_is_told_in_a_sentence(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", image=structs(range(4)), label=LABELS * 2)
    spec = parse_data(str(path))
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match=r"The pictures in .*x\.parquet cannot be read \("):
        open_data(spec)
    path.unlink()
    with pytest.raises(DataError, match="holds no parquet file any more"):
        open_data(spec)


def test_rows_are_counted_by_the_footers(tmp_path: Path) -> None:
    first = write(tmp_path / "train-0.parquet", image=structs(range(4)), label=LABELS * 2)
    write(tmp_path / "train-1.parquet", image=structs(range(2)), label=LABELS)
    assert files.rows_in(first) == (4, 1, first.stat().st_size)
    assert files.rows_in(tmp_path)[:2] == (6, 2)
