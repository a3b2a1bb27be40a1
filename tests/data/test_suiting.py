"""Data of one class, and settings of another task, are refused before anything is launched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringside.data import check_data, open_data, parse_data, source_names
from ringside.data.discovery import task_of
from ringside.data.folder import listing
from ringside.errors import DataError, SpecError
from ringside.hardware import Hardware
from ringside.preflight import look
from ringside.request import RunRequest, resolve
from ringside.spec import RunSpec

AddImages = Callable[..., Path]
CPU = Hardware(num_cores=2)
NUM = 12


def resolved(data: str, **fields: Any) -> RunSpec:
    return resolve(RunRequest(preset="ddp", data=data, batch=2, **fields), CPU)


@pytest.fixture
def single(add_images: AddImages) -> str:
    return str(add_images(*(f"single/{'ab'[i % 2]}/{i}.png" for i in range(NUM))) / "single")


@pytest.fixture
def multi(add_images: AddImages) -> str:
    root = add_images(*(f"multi/{i}.png" for i in range(NUM))) / "multi"
    rows = [f"{i}.png,{'a;b' if i % 2 else 'b'}" for i in range(NUM)]
    (root / "metadata.csv").write_text("\n".join(["file_name,labels", *rows]))
    return str(root)


@pytest.mark.parametrize("layout", ["folders", "label", "labels"])
def test_data_of_one_class_start_no_run(layout: str, add_images: AddImages) -> None:
    root = add_images(*(f"cat/{i}.png" for i in range(NUM)))
    if layout != "folders":
        rows = "".join(f"cat/{i}.png,cat\n" for i in range(NUM))
        (root / "metadata.csv").write_text(f"file_name,{layout}\n{rows}")
    with pytest.raises(DataError) as in_set_up:
        open_data(parse_data(str(root)))
    with pytest.raises(DataError) as before:
        resolved(str(root))
    assert str(before.value) == str(in_set_up.value)


def test_many_pictures_of_one_class_are_refused_like_few(add_images: AddImages) -> None:
    """Though there are plainly enough of them, so that nobody has to deal them."""
    root = add_images(*(f"{i}.png" for i in range(2 * NUM)))
    rows = "".join(f"{i}.png,cat\n" for i in range(2 * NUM))
    (root / "metadata.csv").write_text(f"file_name,label\n{rows}")
    with pytest.raises(DataError, match="are of one class, 'cat'"):
        resolved(str(root))


def test_a_preflight_and_a_check_of_data_say_the_same(add_images: AddImages, root: Path) -> None:
    photos = add_images(*(f"cat/{i}.png" for i in range(NUM)))
    case = look(RunRequest(preset="ddp", data=str(photos), batch=2), CPU, root)
    with pytest.raises(DataError) as caught:
        check_data(str(photos))
    assert str(caught.value) in [fault.sentence for fault in case.faults]


def test_accuracy_is_refused_where_pictures_have_several_labels(single: str, multi: str) -> None:
    overrides = {"best_by": "accuracy"}
    for data in (multi, "emoji", "products:ci"):
        with pytest.raises(SpecError, match="best_by is accuracy, and a task with several labels"):
            resolved(data, overrides=overrides)
    assert resolved(single, overrides=overrides).training.best_by == "accuracy"


def test_weighed_labels_are_refused_where_pictures_have_one_class(single: str, multi: str) -> None:
    overrides = {"pos_weight_cap": "3"}
    with pytest.raises(SpecError, match=r"pos_weight_cap 3 .* one class each"):
        resolved(single, overrides=overrides)
    assert resolved(multi, overrides=overrides).training.pos_weight_cap == 3


def test_a_large_folder_is_left_to_the_trainer(
    single: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SMALL_ENTRIES", 3)
    assert resolved(single, overrides={"pos_weight_cap": "3"}).training.pos_weight_cap == 3


@pytest.mark.parametrize("name", [s.name for s in source_names() if s.name != "folder"])
def test_the_task_is_told_as_opening_tells_it(name: str) -> None:
    spec = parse_data(name)
    assert task_of(spec) == open_data(spec).task


def test_a_preflight_blames_no_setting_that_suits_the_data(single: str, root: Path) -> None:
    """It tries fields by themselves, on other data."""
    request = RunRequest(
        preset="ddp", data=single, batch=2, seed=-1, overrides={"best_by": "accuracy"}
    )
    sentences = [fault.sentence for fault in look(request, CPU, root).faults]
    assert len(sentences) == 1
    assert "seed" in sentences[0]


def test_a_preflight_says_once_that_a_batch_is_uneven(multi: str, root: Path) -> None:
    """And names no batch above what there is, whatever else it tries."""
    request = RunRequest(preset="ddp", data=multi, batch=99)
    (fault,) = look(request, CPU, root).faults
    assert fault.field == "batch"
    assert fault.sentence.endswith("; choose 10.")
