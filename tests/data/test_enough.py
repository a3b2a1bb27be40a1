"""Data smaller than one step are refused before anything is launched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringside.data import open_data, parse_data, source_names
from ringside.data.discovery import count_training
from ringside.data.folder import listing
from ringside.errors import DataError, SpecError
from ringside.hardware import Hardware
from ringside.request import RunRequest, resolve
from ringside.spec import RunSpec

AddImages = Callable[..., Path]


@pytest.fixture
def photos(add_images: AddImages) -> str:
    """37 training images and 3 for validation."""
    rows = [f"{i}.png,{'val' if i > 36 else 'train'},{'ab'[i % 2]}" for i in range(40)]
    root = add_images(*(f"{i}.png" for i in range(40)))
    (root / "metadata.csv").write_text("\n".join(["file_name,split,label", *rows]))
    return str(root)


def resolved(preset: str, data: str, **fields: Any) -> RunSpec:
    return resolve(RunRequest(preset=preset, data=data, **fields), Hardware(num_cores=2))


@pytest.mark.parametrize(
    ("preset", "fields", "sentence"),
    [
        ("ddp", {"batch": 128}, "takes 128 (2 processes x 64); choose a batch of at most 36."),
        ("single", {"batch": 64}, "takes 64 (1 process x 64); choose a batch of at most 37."),
        (
            "ddp_accum4", {"batch": 10},
            "takes 40 (2 processes x 4 micro-steps x 5); choose a batch of at most 8, of which "
            "4 micro-steps make 32.",
        ),
        (
            "model_parallel", {"batch": 40},
            "takes 40 (4 micro-batches x 10); choose a batch of at most 36.",
        ),
        (
            "ddp_accum4", {"batch": 40, "keep_global_batch": True},
            "takes 40 (2 processes x 4 micro-steps x 5); choose a batch of at most 32.",
        ),
    ],
)  # fmt: skip
def test_the_sentence_names_the_largest_batch(
    photos: str, preset: str, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(SpecError) as caught:
        resolved(preset, photos, **fields)
    assert str(caught.value) == f"The data has 37 training images and one step {sentence}"
    largest = int(sentence.partition("at most ")[2].partition(",")[0].rstrip("."))
    assert resolved(preset, photos, **{**fields, "batch": largest}).global_batch <= 37


def test_no_batch_is_named_where_none_works(add_images: AddImages) -> None:
    root = str(add_images("a/1.png", "a/2.png", "b/1.png", "b/2.png"))
    with pytest.raises(SpecError, match="add images, or choose fewer processes or micro-steps"):
        resolved("ddp_accum4", root, batch=2)


@pytest.mark.parametrize(
    ("preset", "fields", "choices"),
    [
        ("ddp", {"batch": 35}, "34 or 36"),
        ("ddp", {"batch": 37}, "36"),
        ("ddp", {"batch": 99}, "36"),
        ("ddp_accum4", {"batch": 9}, "8"),
        ("ddp_accum4", {"batch": 33, "keep_global_batch": True}, "32"),
    ],
)
def test_a_batch_that_cannot_be_split_names_none_that_the_data_refuse(
    photos: str, preset: str, fields: dict[str, Any], choices: str
) -> None:
    with pytest.raises(SpecError, match=rf"cannot be split .*; choose {choices}\.$"):
        resolved(preset, photos, **fields)
    for choice in choices.split(" or "):
        assert resolved(preset, photos, **{**fields, "batch": int(choice)}).global_batch <= 37


def test_an_uneven_batch_names_none_where_none_works(add_images: AddImages) -> None:
    root = str(add_images("a/1.png", "a/2.png", "b/1.png", "b/2.png"))
    with pytest.raises(SpecError, match="too few training images for any that can; add images"):
        resolved("ddp_accum4", root, batch=3, keep_global_batch=True)


@pytest.mark.parametrize("name", [s.name for s in source_names() if s.name != "folder"])
def test_counting_agrees_with_opening(name: str) -> None:
    spec = parse_data(name)
    assert count_training(spec, 64) == len(open_data(spec).train)


def test_a_drawn_split_is_counted_as_it_is_drawn(add_images: AddImages) -> None:
    root = add_images(*(f"{c}/{i}.png" for c in "abc" for i in range(9)))
    spec = parse_data(str(root))
    assert count_training(spec, 25) == len(open_data(spec).train)
    assert count_training(spec, 2) is None  # plainly enough


def test_a_folder_without_pictures_is_refused_before_anything_is_launched(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "notes.txt").touch()
    with pytest.raises(DataError, match="holds no images: pass a folder with one folder per class"):
        resolved("ddp", str(tmp_path), batch=64)


def test_large_and_unusable_folders_are_left_to_the_trainer(
    photos: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(photos, "1.png").unlink()  # a run that skips bad files may still use the rest
    assert count_training(parse_data(photos), 100) == 36
    monkeypatch.setattr(listing, "SMALL_ENTRIES", 10)
    assert count_training(parse_data(photos), 100) is None
    assert resolved("single", photos, batch=64).global_batch == 64
