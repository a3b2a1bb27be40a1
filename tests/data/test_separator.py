"""A person says what separates the labels of a cell, where the guess would be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app import cli
from ringside.data import check_data, open_data, parse_data
from ringside.errors import DataError
from ringside.hardware import Hardware
from ringside.request import RunRequest, resolve
from ringside.spec import DataSpec

AddImages = Callable[..., Path]

CELLS = ["red, deep;blue", "red, deep", "blue", "green|blue"]


def written(root: Path, column: str = "labels", cells: list[str] = CELLS) -> str:
    rows = [{"file_name": f"{i}.png", column: cell} for i, cell in enumerate(cells)]
    (root / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(root / "t.jsonl")


@pytest.fixture
def pictures(add_images: AddImages) -> Path:
    return add_images(*(f"{i}.png" for i in range(4)))


@pytest.mark.parametrize(
    ("separator", "classes", "said"),
    [
        (None, ("blue", "green|blue", "red, deep"), "separated by a semicolon."),
        (";", ("blue", "green|blue", "red, deep"), "separated by a semicolon as chosen"),
        ("comma", ("blue", "deep", "deep;blue", "green|blue", "red"), "by a comma as chosen"),
        ("|", ("blue", "green", "red, deep", "red, deep;blue"), "by a bar as chosen"),
        ("newline", tuple(sorted(CELLS)), "by a line break, which no cell has"),
        ("none", tuple(sorted(CELLS)), "one label per cell as chosen"),
    ],
)
def test_the_choice_counts_and_is_said(
    pictures: Path, separator: str | None, classes: tuple[str, ...], said: str
) -> None:
    spec = parse_data(written(pictures), separator=separator)
    data = open_data(spec)
    assert data.task == "multi_label"
    assert data.classes == classes
    report = check_data(spec)
    assert said in report.layout
    assert tuple(c.name for c in report.classes) == classes


def test_a_column_of_one_class_is_cut_when_a_person_says_so(pictures: Path) -> None:
    table = written(pictures, "label")
    for separator, task, num_classes in ((";", "multi_label", 3), ("none", "single_label", 4)):
        data = open_data(parse_data(table, separator=separator))
        assert (data.task, len(data.classes)) == (task, num_classes)
    assert open_data(parse_data(table)).task == "single_label"


def test_none_leaves_brackets_alone(pictures: Path) -> None:
    table = written(pictures, cells=["[1, 2]", "[1]", "x", "y"])
    assert open_data(parse_data(table)).classes == ("1", "2", "x", "y")
    chosen = open_data(parse_data(table, separator="none"))
    assert chosen.classes == ("[1, 2]", "[1]", "x", "y")


def test_another_separator_is_another_data_set(pictures: Path) -> None:
    table = written(pictures)
    prints = {open_data(parse_data(table, separator=s)).fingerprint for s in (";", ",", "none")}
    assert len(prints) == 3


def test_where_nothing_is_separated_the_choice_is_refused(add_images: AddImages) -> None:
    root = add_images("a/1.png", "a/2.png", "b/1.png", "b/2.png")
    (root / "flags.csv").write_text("file_name,x,y\na/1.png,1,0\nb/1.png,0,1\n")
    (root / "lists.jsonl").write_text('{"file_name": "a/1.png", "labels": ["x"]}')
    for data, part in (
        ("emoji", "emoji has no table of labels"),
        (str(root), "names of its folders"),
        (str(root / "flags.csv"), "one column per label"),
        (str(root / "lists.jsonl"), "labels holds lists"),
    ):
        with pytest.raises(DataError, match=part) as caught:
            open_data(parse_data(data, separator=";"))
        assert "leave out --separator" in str(caught.value)
    with pytest.raises(DataError, match=r"'/' does not separate labels here: choose ; \| ,"):
        parse_data(str(root), separator="/")


def test_a_run_records_it(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = written(pictures)
    request = RunRequest(preset="single", data=table, batch=2, separator="semicolon")
    spec = resolve(request, Hardware(num_cores=2))
    assert (spec.data.separator, spec.sources["data.separator"]) == (";", "flag")
    with pytest.raises(SystemExit) as left:
        cli.main(["data", "check", table, "--separator", "none", "--json"])
    assert left.value.code == 0
    report = json.loads(capsys.readouterr().out)
    assert [c["name"] for c in report["classes"]] == sorted(CELLS)


def test_an_older_spec_has_none() -> None:
    assert DataSpec(source="folder", path="/x").separator is None
