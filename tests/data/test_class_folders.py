"""Class folders, and everything that real folders contain besides."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ringside.data import decode_rgb
from ringside.data.images import ImageData
from ringside.errors import DataError

AddImages = Callable[..., Path]
Opened = Callable[[Path], ImageData]
LabelsOf = Callable[[ImageData], dict[str, list[str]]]

REAL_PHOTOS = Path(__file__).parents[3] / "shared" / "datasets"
needs_real_photos = pytest.mark.skipif(
    not REAL_PHOTOS.is_dir(), reason=f"the real photographs are not at {REAL_PHOTOS}"
)


def notes(data: ImageData) -> str:
    return "\n".join(data.notes)


def test_class_index_follows_code_points_whatever_the_numbers(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf
) -> None:
    data = opened(add_images(*(f"{name}/{i}.png" for name in ("9", "10", "100") for i in "ab")))
    assert data.classes == ("10", "100", "9")
    assert data.task == "single_label"
    assert labels_of(data)["9/a.png"] == ["9"]


def test_the_top_folder_is_the_class(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf
) -> None:
    data = opened(add_images("a/x/1.png", "b/x/1.png", "b/y/1.png"))
    assert labels_of(data) == {"a/x/1.png": ["a"], "b/x/1.png": ["b"], "b/y/1.png": ["b"]}


def test_hidden_and_system_entries_are_ignored_and_named(
    add_images: AddImages, opened: Opened
) -> None:
    root = add_images("cat/1.PNG", "cat/2.png", "dog/1.png", ".ipynb_checkpoints/1.png",
                      "__MACOSX/cat/1.png", "cat/.hidden.png")  # fmt: skip
    (root / "bird").mkdir()
    (root / "Thumbs.db").write_bytes(b"x")
    (root / "cat" / ".DS_Store").write_bytes(b"x")
    data = opened(root)
    assert data.classes == ("cat", "dog")
    assert len(data.train) + len(data.val) == 3
    assert "The class folder 'bird' holds no images" in notes(data)
    for name in (".DS_Store", ".hidden.png", ".ipynb_checkpoints", "Thumbs.db", "__MACOSX"):
        assert name in notes(data)


def test_train_and_val_folders_are_the_split(add_images: AddImages, opened: Opened) -> None:
    root = add_images("train/a/1.png", "train/b/1.png", "Valid/a/2.png", "test/b/9.png", "x/z.png")
    data = opened(root)
    assert data.classes == ("a", "b")
    assert [data.train.name(i) for i in range(2)] == [f"{root}/train/{x}/1.png" for x in "ab"]
    assert (len(data.val), data.val.name(0)) == (1, f"{root}/Valid/a/2.png")
    assert "Left out 1 image in test: another folder is for validation." in data.notes
    assert "Left out 1 image in x: beside the train folder." in data.notes
    (note,) = (note for note in data.notes if note.startswith("No AUC and no"))
    assert note.endswith("because validation has no image of it: b.")


def test_a_test_folder_validates_when_nothing_else_is_held_out(
    add_images: AddImages, opened: Opened
) -> None:
    data = opened(add_images("a/1.png", "b/1.png", "test/a/2.png", "test/c/2.png"))
    assert (len(data.train), len(data.val)) == (2, 2)
    assert data.classes == ("a", "b", "c")
    (note,) = (note for note in data.notes if note.startswith("Never learned"))
    assert note.endswith("because only validation has images of it: c.")


def test_vehicles_may_be_trains(add_images: AddImages, opened: Opened) -> None:
    data = opened(add_images("car/1.png", "bus/1.png", "train/1.png", "train/2.png"))
    assert data.classes == ("bus", "car", "train")


def test_without_a_split_a_fifth_is_drawn_from_every_class(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf
) -> None:
    root = add_images(*(f"{name}/{i}.png" for name in "abc" for i in range(10)))
    data = opened(root)
    assert data.val.targets.sum(axis=0).tolist() == [2, 2, 2]
    assert "Drew 6 of 30 images for validation (seed 0)." in data.notes
    assert labels_of(opened(root)) == labels_of(data)


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "holds no images"),
        (["1.png", "2.png"], "no class folders"),
        (["images/1.png", "images/2.png"], "only the class folder 'images'"),
        (["val/a/1.png", "val/b/1.png"], "validation only"),
        (["train/1.png", "val/1.png"], "no class folders"),
    ],
)
def test_folders_without_two_classes_are_refused(
    add_images: AddImages, opened: Opened, paths: list[str], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        opened(add_images(*paths))


def test_links_never_lead_outside(
    add_images: AddImages,
    opened: Opened,
    labels_of: LabelsOf,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.png"
    root = add_images("a/1.png", "b/1.png", "b/2.png")
    secret.write_bytes((root / "a/1.png").read_bytes())
    (root / "a" / "out.png").symlink_to(secret)
    (root / "a" / "folder").symlink_to(secret.parent)
    (root / "a" / "inside.png").symlink_to(root / "b" / "1.png")
    data = opened(root)
    assert set(labels_of(data)) == {"a/1.png", "a/inside.png", "b/1.png", "b/2.png"}
    assert "Left out 2 links" in notes(data)
    (root / "metadata.csv").write_text("file_name,label\na/1.png,x\na/out.png,y\n")
    with pytest.raises(DataError, match=r"1 of 2 rows .* a/out.png \(line 3 of .*: outside the"):
        opened(root)


def test_equal_content_gives_equal_fingerprints_wherever_it_lies(
    tmp_path: Path, add_images: AddImages, opened: Opened
) -> None:
    names = [f"{folder}/{name}/{i}.png" for folder in "12" for name in "ab" for i in range(3)]
    add_images(*names)
    for path in (tmp_path / "1").rglob("*.png"):
        (tmp_path / "2" / path.relative_to(tmp_path / "1")).write_bytes(path.read_bytes())
    first = opened(tmp_path / "1").fingerprint
    assert opened(tmp_path / "2").fingerprint == first
    picture = tmp_path / "2" / "a" / "0.png"
    picture.write_bytes(picture.read_bytes()[:-1] + b"?")  # same name, same size
    assert opened(tmp_path / "2").fingerprint != first


def test_a_file_that_vanished_is_named(add_images: AddImages, opened: Opened) -> None:
    root = add_images("a/1.png", "b/1.png")
    data = opened(root)
    Path(data.train.name(0)).unlink()
    with pytest.raises(DataError, match=r"/1\.png cannot be read"):
        data.train.read(0)


@needs_real_photos
def test_microscope_photos_with_a_split_column(opened: Opened) -> None:
    data = opened(REAL_PHOTOS / "bccd" / "images")
    assert data.task == "multi_label"
    assert data.classes == ("Platelets", "RBC", "WBC")
    assert (len(data.train), len(data.val)) == (205, 87)
    assert data.val.targets.sum(axis=0).tolist() == [45, 83, 86]  # WBC has one negative
    assert decode_rgb(data.val.read(0), data.val.name(0)).shape == (480, 640, 3)


@needs_real_photos
def test_tree_photos_in_class_folders(opened: Opened) -> None:
    data = opened(REAL_PHOTOS / "trees")
    assert data.task == "single_label"
    assert data.classes == ("Hemlock", "Japanese_Cherry")
    assert (len(data.train), len(data.val)) == (16, 4)
    assert data.val.targets.sum(axis=0).tolist() == [2, 2]
    assert "Left out 1 image in Test: in no class folder." in data.notes
    assert np.ptp(decode_rgb(data.train.read(0), data.train.name(0))) > 100
