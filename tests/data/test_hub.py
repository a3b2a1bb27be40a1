"""Data sets of the Hub: names, commits, columns, splits, pictures; with a Hub on this machine."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
from msgspec import structs
from PIL import Image

from ringside.data import check_data, decode_rgb, open_data, parse_data
from ringside.data.discovery import count_training
from ringside.data.hub import loading, naming
from ringside.data.images import ImageData
from ringside.errors import DataError
from ringside.spec import DataSpec

# Test modules are not on the import path (--import-mode=importlib), so neither is their neighbour.
_found = importlib.util.spec_from_file_location("fake_hub", Path(__file__).with_name("fake_hub.py"))
assert _found is not None
assert _found.loader is not None
fake_hub = importlib.util.module_from_spec(_found)
_found.loader.exec_module(fake_hub)
COMMIT, REPOSITORY = fake_hub.COMMIT, fake_hub.REPOSITORY

Columns = dict[str, tuple[Any, list[Any]]]
Given = Callable[..., ImageData]
PETS = datasets.ClassLabel(names=["dog", "cat"])
TEXT, FLAG = datasets.Value("string"), datasets.Value("bool")


def jpeg(i: int) -> dict[str, Any]:
    content = io.BytesIO()
    Image.new("RGB", (12, 10), (i * 7 % 256, i * 13 % 256, 90)).save(content, "JPEG")
    return {"bytes": content.getvalue(), "path": None}


def table(first: int, count: int, columns: Columns) -> datasets.Dataset:
    """`count` pictures with more columns, each a feature and its values."""
    features = {"image": datasets.Image(), **{name: kind for name, (kind, _) in columns.items()}}
    content = {
        "image": [jpeg(i) for i in range(first, first + count)],
        **{name: values for name, (_, values) in columns.items()},
    }
    return datasets.Dataset.from_dict(content, features=datasets.Features(features))


def stored(folder: Path, splits: dict[str, datasets.Dataset]) -> Path:
    """A repository as it lies on the Hub: one parquet file per split."""
    (folder / "data").mkdir(parents=True)
    for name, split in splits.items():
        split.to_parquet(folder / "data" / f"{name}-00000-of-00001.parquet")
    return folder


@pytest.fixture(autouse=True)
def _no_progress_bars() -> None:
    datasets.disable_progress_bars()


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    """Open these splits by the way of the source, without asking a Hub."""

    def opened(separator: str | None = None, **splits: datasets.Dataset) -> ImageData:
        folder = stored(tmp_path / "repository", splits)
        loaded = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
        monkeypatch.setattr(loading, "load_splits", lambda *_: dict(loaded))
        return open_data(parse_data(f"hf:{REPOSITORY}@{COMMIT}", separator=separator))

    return opened


def labels_of(data: ImageData) -> dict[str, list[str]]:
    return {
        split.name(i).removeprefix(f"{REPOSITORY}/"): [data.classes[k] for k in np.flatnonzero(row)]
        for split in (data.train, data.val)
        for i, row in enumerate(split.targets)
    }


COLUMNS: dict[str, tuple[Columns, str, list[list[str]]]] = {
    "classes": (
        {"label": (PETS, [0, 1, 1, 0])}, "single_label", [["dog"], ["cat"], ["cat"], ["dog"]],
    ),
    "the only column of classes": (
        {"n": (datasets.Value("int64"), [1, 2, 3, 4]), "animal": (PETS, [0, 1, 1, 0])},
        "single_label", [["dog"], ["cat"], ["cat"], ["dog"]],
    ),
    "lists of classes": (
        {"what": (datasets.List(PETS), [[0, 1], [], [1], [0]])},
        "multi_label", [["cat", "dog"], [], ["cat"], ["dog"]],
    ),
    "lists of names": (
        {"what": (datasets.List(TEXT), [["007", "NA"], ["null"], [], ["1e5"]])},
        "multi_label", [["007", "NA"], ["null"], [], ["1e5"]],
    ),
    "texts": (
        {"tags": (TEXT, ["007;NA", "NA", "null", ""]), "author": (TEXT, ["a", "b", "c", "d"])},
        "multi_label", [["007", "NA"], ["NA"], ["null"], []],
    ),
    "one text": (
        {"label": (TEXT, ["a;b", "c", "c", "c"])}, "single_label", [["a;b"], ["c"], ["c"], ["c"]],
    ),
    "numbers": (
        {"label": (datasets.Value("int64"), [7, 10, 7, 10])},
        "single_label", [["7"], ["10"], ["7"], ["10"]],
    ),
    "flags": (
        {"x": (FLAG, [True, True, False, False]), "y": (FLAG, [False, True, False, True])},
        "multi_label", [["x"], ["x", "y"], [], ["y"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLUMNS)
def test_labels_are_found_by_the_types_of_the_columns(given: Given, kind: str) -> None:
    columns, task, expected = COLUMNS[kind]
    data = given(train=table(0, 4, columns), validation=table(9, 4, columns))
    assert data.task == task
    assert labels_of(data) == {
        f"{split}/{row}": labels
        for split in ("train", "validation")
        for row, labels in enumerate(expected)
    }


def test_a_chosen_separator_cuts_the_texts(given: Given) -> None:
    split = table(0, 4, {"label": (TEXT, ["a;b", "b", "a", "a|b"])})
    assert given(train=split, separator=";").classes == ("a", "a|b", "b")


def test_pictures_are_the_stored_bytes_also_after_a_pickle(given: Given) -> None:
    data = given(train=table(0, 6, {"label": (PETS, [0, 1] * 3)}),
                 test=table(6, 2, {"label": (PETS, [0, 1])}))  # fmt: skip
    copy = pickle.loads(pickle.dumps(data.train.part(2, 5)))
    assert [copy.read(i) for i in range(3)] == [jpeg(i)["bytes"] for i in (2, 3, 4)]
    assert [copy.name(i) for i in range(3)] == [f"{REPOSITORY}/train/{i}" for i in (2, 3, 4)]
    assert decode_rgb(data.val.read(1), data.val.name(1)).shape == (10, 12, 3)
    with pytest.raises(IndexError):
        data.train.read(6)


def test_a_pickle_carries_paths_and_no_pictures(given: Given) -> None:
    data = given(train=table(0, 300, {"label": (PETS, [0, 1] * 150)}))
    pictures = sum(len(data.train.read(i)) for i in range(len(data.train)))
    assert len(pickle.dumps(data.train.part(0, 64))) < 8_000 < pictures / 10


def test_without_labels_in_the_test_split_a_fifth_is_drawn(given: Given) -> None:
    train = {"label": (PETS, [0, 1] * 10)}
    secret = {"label": (PETS, [-1] * 5)}
    data = given(train=table(0, 20, train), test=table(30, 5, secret))
    assert (len(data.train), len(data.val)) == (16, 4)
    assert "Left out 5 rows without a label." in data.notes
    assert any(note.startswith("Drew 4 of 20 images") for note in data.notes)


@pytest.mark.parametrize(
    "columns",
    [
        {"label": (PETS, [-1] * 4)},
        {"labels": (datasets.List(PETS), [[]] * 4)},
        {"label": (TEXT, [None, "", " ", None])},
        {"x": (FLAG, [False] * 4)},
    ],
    ids=["classes", "lists", "texts", "flags"],
)
def test_rows_without_any_label_are_one_sentence(given: Given, columns: Columns) -> None:
    sentence = f"No row of hf:{REPOSITORY} has a label: choose another data set."
    with pytest.raises(DataError) as said:
        given(train=table(0, 4, columns))
    assert str(said.value) == sentence
    report = check_data(parse_data(f"hf:{REPOSITORY}@{COMMIT}"))
    assert (report.num_usable, [n.code for n in report.warnings][-1]) == (0, "no-run")


def test_rows_left_out_are_counted_before_a_launch(given: Given) -> None:
    """Not before: all of the data would have to be loaded."""
    spec = given(train=table(0, 6, {"label": (PETS, [0, 1] * 3)}),
                 validation=table(9, 2, {"label": (PETS, [0, 1])})).spec  # fmt: skip
    assert count_training(spec, 1) is None
    assert count_training(structs.replace(spec, skip=("train/0", "train/3")), 1) == 4
    dogs = structs.replace(spec, skip=("train/0", "train/2", "train/4", "validation/0"))
    with pytest.raises(DataError, match="one class, 'cat'"):
        count_training(dogs, 1)


def test_test_rows_are_left_out_beside_validation_and_other_splits_too(given: Given) -> None:
    columns = {"label": (PETS, [0, 1])}
    data = given(train=table(0, 2, columns), validation=table(2, 2, columns),
                 test=table(4, 2, columns), extra=table(6, 2, columns))  # fmt: skip
    assert (len(data.train), len(data.val)) == (2, 2)
    assert "Left out 2 rows for testing, because others are for validation." in data.notes
    assert any(note.endswith("test: extra.") for note in data.notes)


def test_equal_pictures_stay_in_one_part(given: Given) -> None:
    split = table(0, 10, {"label": (PETS, [0, 1] * 5)})
    data = given(train=datasets.concatenate_datasets([split, split]))
    contents = [{part.read(i) for i in range(len(part))} for part in (data.train, data.val)]
    assert contents[0].isdisjoint(contents[1])


def test_the_fingerprint_follows_commit_and_labels(given: Given) -> None:
    data = given(train=table(0, 8, {"label": (PETS, [0, 1] * 4)}))
    again = open_data(parse_data(f"hf:{REPOSITORY}@{COMMIT}"))
    other = open_data(parse_data(f"hf:{REPOSITORY}@{'f' * 40}"))
    assert data.fingerprint == again.fingerprint != other.fingerprint


def test_the_check_names_bad_rows_and_a_run_leaves_them_out(given: Given) -> None:
    split = table(0, 8, {"label": (PETS, [0, 1] * 4)}).to_dict()
    split["image"][3]["bytes"] = split["image"][3]["bytes"][:200]
    split["image"][4] = None
    features = datasets.Features({"image": datasets.Image(), "label": PETS})
    data = given(train=datasets.Dataset.from_dict(split, features=features))
    report = check_data(data.spec)
    assert {bad.file: bad.code for bad in report.bad} == {
        "train/3": "truncated",
        "train/4": "empty",
    }
    assert report.layout.startswith("Commit 01234567, images in column image, one class per image")
    assert report.num_usable == 6
    kept = open_data(data.spec, skip=report.skip)
    assert len(kept.train) + len(kept.val) == 6


READ = """
import hashlib, json, sys
from ringside.data import open_data, parse_data
data = open_data(parse_data(sys.argv[1]))
parts = [part for part in (data.train, data.val)]
read = [part.read(i) for part in parts for i in range(len(part))]
print(json.dumps([list(data.classes), sorted(hashlib.md5(one).hexdigest() for one in read)]))
"""


def test_pictures_in_files_of_their_own_lie_in_the_caches(tmp_path: Path) -> None:
    """They are downloaded one by one, and what has their names there are links."""
    contents = [jpeg(i)["bytes"] for i in range(4)]
    repository = tmp_path / "repository"
    for i, content in enumerate(contents):
        path = repository / "train" / ("dog", "cat")[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with fake_hub.serving(repository) as hub:
        done = subprocess.run(
            [sys.executable, "-c", READ, f"hf:{REPOSITORY}"],
            env={**os.environ, "HF_ENDPOINT": hub.endpoint, "HF_HOME": str(tmp_path / "home")},
            cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    digests = sorted(hashlib.md5(content).hexdigest() for content in contents)
    assert json.loads(done.stdout) == [["cat", "dog"], digests]


def test_rows_name_no_file_outside_the_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A data set is written by a stranger, and every file of this machine has a path."""
    cache, secret = tmp_path / "cache", tmp_path / "secret.jpg"
    cache.mkdir()
    for path in (secret, cache / "good.jpg"):
        path.write_bytes(jpeg(1)["bytes"])
    (cache / "link.jpg").symlink_to(secret)
    os.mkfifo(cache / "pipe.jpg")
    named = [
        str(path)
        for path in (
            cache / "good.jpg", secret, cache / "link.jpg", cache / ".." / "secret.jpg",
            cache / "pipe.jpg", "/dev/zero", tmp_path / "cached.jpg", "secret.jpg", "a\0b",
        )
    ]  # fmt: skip
    rows = {"image": [{"bytes": None, "path": path} for path in named], "label": [0, 1] * 4 + [0]}
    features = datasets.Features({"image": datasets.Image(), "label": PETS})
    folder = tmp_path / "repository" / "data"
    folder.mkdir(parents=True)
    split = datasets.Dataset.from_dict(rows, features=features)
    pq.write_table(split.data.table, folder / "train-00000-of-00001.parquet")
    loaded = datasets.load_dataset(str(folder.parent), cache_dir=str(tmp_path / "arrow"))
    monkeypatch.setattr(loading, "load_splits", lambda *_: dict(loaded))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    report = check_data(parse_data(f"hf:{REPOSITORY}@{COMMIT}"))
    reasons = {int(bad.file.removeprefix("train/")): bad.reason for bad in report.bad}
    assert reasons.pop(4) == "is no regular file: replace or remove it."
    assert sorted(reasons) == [1, 2, 3, 5, 6, 7, 8]
    for row, reason in reasons.items():
        outside = "which is no part of the data: leave the row out."
        assert reason == f"names {named[row]!r}, {outside}"


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"score": (datasets.Value("float32"), [0.5, 1])}, "no column of labels"),
        ({"fine": (PETS, [0, 1]), "coarse": (PETS, [0, 1])}, r"several .* \(fine, coarse\)"),
        ({"label": (PETS, [0, 1]), "labels": (TEXT, ["a", "b"])}, r"several .*label, labels"),
        ({"label": (PETS, [0, 1]), "other": (datasets.Image(), [jpeg(1), jpeg(2)])}, None),
    ],
)
def test_columns_that_leave_it_open_are_refused(
    given: Given, columns: Columns, message: str | None
) -> None:
    split = table(0, 2, columns)
    if message is None:
        assert given(train=split).classes == ("cat", "dog")  # `image` is the usual name
        return
    with pytest.raises(DataError, match=message) as caught:
        given(train=split)
    assert f"hf:{REPOSITORY}" in str(caught.value)


@pytest.mark.parametrize("text", ["hf:", "hf:pets", "hf:a/b/c", "hf:../x", "hf:a/b@", "hf:a b/c"])
def test_what_names_no_data_set_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="write hf:owner/name"):
        parse_data(text)


def test_a_commit_needs_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "ask_hub", None)
    spec = parse_data(f"hf:a/b:small@{COMMIT}", image_size=64)
    assert spec == DataSpec(
        source="hub", profile="small", image_size=64, repository="a/b", revision=COMMIT
    )
    assert spec.label == "hf:a/b:small"


ASK = """
import json, sys
from ringside.data import open_data, parse_data
from ringside.errors import DataError
for text in sys.argv[1:]:
    try:
        data = open_data(parse_data(text))
        found = [data.spec.revision, len(data.train), len(data.val), data.fingerprint, data.task]
    except DataError as error:
        found = str(error)
    print(json.dumps(found), flush=True)
"""


def test_from_the_hub_to_the_cache_and_then_without_a_network(tmp_path: Path) -> None:
    columns = {"label": (PETS, [0, 1] * 5)}
    repository = stored(
        tmp_path / "repository",
        {"train": table(0, 10, columns), "validation": table(20, 10, columns)},
    )
    (tmp_path / REPOSITORY).mkdir(parents=True)

    def ask(endpoint: str, *texts: str) -> list[Any]:
        done = subprocess.run(
            [sys.executable, "-c", ASK, *texts],
            env={**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "home")},
            cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
        return [json.loads(line) for line in done.stdout.splitlines()]

    name = f"hf:{REPOSITORY}"
    with fake_hub.serving(repository) as hub:
        (taken,) = ask(hub.endpoint, name)  # `datasets` would read the folder instead
        (tmp_path / REPOSITORY).rmdir()
        first, no_revision, no_set, no_config = ask(
            hub.endpoint, name, f"{name}@v2", "hf:some/none", f"{name}:large"
        )
        asked = len(hub.asked)
        (again,) = ask(hub.endpoint, f"{name}@{COMMIT}")
        assert len(hub.asked) == asked  # a prepared commit asks nothing
    assert f"The folder {tmp_path / REPOSITORY} has the name of the data set" in taken
    assert first[:3] == [COMMIT, 10, 10]
    assert again == first
    assert "no revision 'v2'" in no_revision
    assert "no data set 'some/none' that you may read" in no_set
    assert "cannot be loaded" in no_config
    shutil.rmtree(repository)
    cached, other = ask(hub.endpoint, name, f"{name}@{'a' * 40}")
    assert cached == first  # the newest commit that lies here
    assert "The Hub cannot be reached" in other
    assert other.endswith("copy the pictures here and name their folder (--data FOLDER).")
