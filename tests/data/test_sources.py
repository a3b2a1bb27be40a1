"""The contract of a data source, for every module found in `ringside.data.sources`."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ringside.data import (
    decode_rgb,
    open_data,
    parse_data,
    read_classes,
    source_names,
    write_classes,
)
from ringside.data.images import ImageData, ImageSplit
from ringside.errors import DataError
from ringside.spec import DataSpec


@pytest.fixture(params=[source.name for source in source_names()])
def data(request: pytest.FixtureRequest, add_images: Callable[..., Path]) -> ImageData:
    if request.param == "folder":
        return open_data(parse_data(str(add_images("a/1.png", "a/2.png", "b/1.png", "b/2.png"))))
    return open_data(parse_data(request.param))


def pixels_of(split: ImageSplit, i: int) -> np.ndarray:
    """As training sees them: from a source that keeps pixels, else decoded."""
    if hasattr(split, "pixels"):
        return split.pixels(i)
    return decode_rgb(split.read(i), split.name(i))


def test_sources_are_discovered_in_the_order_of_their_names() -> None:
    assert [source.name for source in source_names()] == [
        "emoji", "folder", "products", "synthetic",
    ]  # fmt: skip
    assert [source.synthetic for source in source_names()] == [False, False, True, True]


def test_targets_have_one_row_per_picture_and_one_column_per_class(data: ImageData) -> None:
    for split in (data.train, data.val):
        assert len(split) > 0
        assert split.targets.shape == (len(split), len(data.classes))
        assert split.targets.dtype == np.uint8
        assert set(np.unique(split.targets)) <= {0, 1}
    if data.task == "single_label":
        assert (data.train.targets.sum(axis=1) == 1).all()


def test_every_picture_position_decodes_and_has_a_name_of_its_own(data: ImageData) -> None:
    names = [split.name(i) for split in (data.train, data.val) for i in range(len(split))]
    assert len(set(names)) == len(names)
    for split in (data.train, data.val):
        for i in (0, len(split) // 2, len(split) - 1):
            pixels = pixels_of(split, i)
            assert pixels.ndim == 3
            assert pixels.shape[2] == 3
            assert pixels.dtype == np.uint8


def test_classes_are_unique_and_in_code_point_order(data: ImageData) -> None:
    assert list(data.classes) == sorted(set(data.classes))


def test_a_pickled_split_reads_the_same_bytes(data: ImageData) -> None:
    copy = pickle.loads(pickle.dumps(data.val))
    assert np.array_equal(pixels_of(copy, 0), pixels_of(data.val, 0))
    assert copy.name(0) == data.val.name(0)
    assert np.array_equal(copy.targets, data.val.targets)


def test_an_index_outside_the_split_is_refused(data: ImageData) -> None:
    with pytest.raises(IndexError):
        pixels_of(data.val, len(data.val))


def test_opening_twice_gives_the_same_fingerprint(data: ImageData) -> None:
    assert open_data(data.spec).fingerprint == data.fingerprint
    assert len(data.fingerprint) == 32


def test_class_list_survives_its_file(data: ImageData, tmp_path: Path) -> None:
    path = tmp_path / "classes.json"
    write_classes(path, data.classes)
    assert read_classes(path) == data.classes
    assert [file.name for file in tmp_path.glob("classes*")] == ["classes.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"format": 2, "classes": []}', "format 2"),
        ('{"format": 1}', "not a class list"),
        ("nonsense", "not a class list"),
    ],
)
def test_unusable_class_file_is_refused_in_a_sentence(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "classes.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_classes(tmp_path / "classes.json")
    with pytest.raises(DataError, match="cannot be read"):
        read_classes(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("emoji", DataSpec(source="emoji", image_size=32)),
        ("products", DataSpec(source="products", profile="demo", image_size=64)),
        ("products:ci", DataSpec(source="products", profile="ci", image_size=32)),
    ],
)
def test_a_name_means_a_source_with_its_default_size(text: str, spec: DataSpec) -> None:
    assert parse_data(text) == spec


def test_a_given_image_size_wins() -> None:
    assert parse_data("products:ci", image_size=48).image_size == 48
    with pytest.raises(DataError, match="image size 4 is outside"):
        parse_data("emoji", image_size=4)


def test_a_folder_becomes_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "photos" / "emoji").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = DataSpec(source="folder", path=str(tmp_path / "photos"), image_size=224)
    assert parse_data("photos", cwd=tmp_path) == expected
    assert parse_data("~/photos") == expected
    assert parse_data(str(tmp_path / "photos" / "..") + "/photos") == expected
    assert parse_data("./emoji", cwd=tmp_path / "photos").source == "folder"
    assert parse_data("emoji", cwd=tmp_path / "photos").source == "emoji"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("emojy", "'emojy' is neither .* Did you mean 'emoji'"),
        ("/no/such/folder", "Known: emoji, products"),
        ("products:dem", "no profile 'dem'.*'demo'"),
        ("emoji:ci", "'emoji' has no profiles"),
        ("", "Name a data source"),
        ("folder", "path of a folder"),
        (__file__, "is a file"),
    ],
)
def test_what_is_neither_source_nor_folder_is_refused(text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        parse_data(text)


def test_an_unknown_source_in_a_stored_request_is_refused() -> None:
    with pytest.raises(DataError, match=r"no data source 'tarball'"):
        open_data(DataSpec(source="tarball"))


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import ringside.data, ringside.scores, sys; ringside.data.source_names();"
        "print([m for m in ('numpy', 'PIL', 'pyarrow', 'sklearn', 'torch') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
