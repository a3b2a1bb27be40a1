"""`ringside data check`: what it prints, what scripts rely on, and its exit codes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from app import cli
from ringside.data import open_data, parse_data
from ringside.data.folder.records import RowFault
from ringside.data.notes import WarningCode
from ringside.data.pixels import Fault
from ringside.errors import DataError

DOCS = Path(cli.__file__).parents[1] / "docs"
AddImages = Callable[..., Path]
Ringside = Callable[..., tuple[int, str, str]]

KEYS = {
    "data", "root", "task", "layout", "num_files", "num_usable", "num_train", "num_val", "bad",
    "classes", "unusual", "warnings", "notes",
}  # fmt: skip
INNER_KEYS = {
    "bad": {"file", "code", "reason", "is_used"},
    "classes": {"name", "train", "val"},
    "unusual": {"kind", "num_images", "examples"},
    "warnings": {"code", "message"},
}


@pytest.fixture
def ringside(capsys: pytest.CaptureFixture[str]) -> Ringside:
    def run(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            cli.main(list(argv))
        out, err = capsys.readouterr()
        code = left.value.code
        assert isinstance(code, int)
        return code, out, err

    return run


@pytest.fixture
def photos(add_images: AddImages) -> Path:
    return add_images(*(f"{name}/{i}.png" for name in ("cat", "dog") for i in range(5)))


def test_a_good_folder(ringside: Ringside, photos: Path) -> None:
    code, out, _ = ringside("data", "check", str(photos))
    assert code == 0
    assert "10 images, 10 usable: 8 for training, 2 for validation" in out
    assert re.search(r"^  cat +4 +1$", out, re.MULTILINE)
    assert out.endswith(
        "A run would use 10 images. It has 8 training images, fewer than the usual batch of 64: "
        "add images, or give a run --batch 8 or less.\n"
    )


@pytest.mark.parametrize("layout", ["folders", "table"])
@pytest.mark.parametrize("number", [2, 3])
def test_so_few_images_that_nothing_is_learned(
    layout: str, number: int, ringside: Ringside, add_images: AddImages
) -> None:
    names = [f"{'ab'[i % 2]}/{i}.png" for i in range(number)]
    root = add_images(*names)
    if layout == "table":
        rows = "".join(f"{name},{name[0]}\n" for name in names)
        (root / "metadata.csv").write_text(f"file_name,label\n{rows}")
    code, out, _ = ringside("data", "check", str(root))
    assert code == 0
    trained = f"{number - 1} training image" + "s" * (number > 2)
    assert f"It has {trained}, fewer than the usual batch of 64" in out
    assert ("Nothing to tell apart: 1 image to train on, labelled alike (" in out) == (number == 2)


@pytest.mark.parametrize("layout", ["folders", "label", "labels", "rest bare"])
def test_one_class_is_refused_wherever_it_stands_and_one_label_is_a_question(
    layout: str, ringside: Ringside, add_images: AddImages
) -> None:
    root = add_images(*(f"cat/{i}.png" for i in range(8)))
    if layout != "folders":
        column = "label" if layout == "label" else "labels"
        cells = ["cat" if i < 4 or layout != "rest bare" else "" for i in range(8)]
        rows = "".join(f"cat/{i}.png,{cell}\n" for i, cell in enumerate(cells))
        (root / "metadata.csv").write_text(f"file_name,{column}\n{rows}")
    code, out, err = ringside("data", "check", str(root))
    if layout == "rest bare":  # with it or without it: that can be learned
        assert code == 0
        assert "A run would use 8 images." in out
        return
    reason = {
        "folders": "has only the class folder 'cat': put the images into one folder per class",
        "label": "are of one class, 'cat'",
        "labels": "have the same labels (cat)",
    }[layout]
    assert code == (2 if layout == "folders" else 1)  # there the layout itself is in doubt
    assert reason in out + err
    assert "A run would use" not in out
    with pytest.raises(DataError, match=re.escape(reason)):
        open_data(parse_data(str(root)))


def test_bad_files_give_code_1_and_say_how_to_go_on(ringside: Ringside, photos: Path) -> None:
    (photos / "cat" / "0.png").write_bytes(b"<html></html>")
    code, out, _ = ringside("data", "check", str(photos))
    assert code == 1
    assert "cat/0.png  is not an image but an HTML page" in out
    assert "A run stops at the first of 1 bad file." in out
    assert "with --skip-bad a run would use 9 images" in out


def test_long_lists_are_cut_for_people_only(ringside: Ringside, photos: Path) -> None:
    for i in range(30):
        (photos / "cat" / f"bad{i}.png").write_bytes(b"")
    _, out, _ = ringside("data", "check", str(photos))
    assert out.count("0 bytes") == 20
    assert "and 10 more; --json has them all" in out
    assert len(json.loads(ringside("data", "check", str(photos), "--json")[1])["bad"]) == 30


def test_odd_names_neither_break_the_report_nor_reach_the_terminal(
    ringside: Ringside, photos: Path
) -> None:
    (photos / "cat" / "\x1b[2Jx.png").write_bytes(b"")
    (photos / "cat" / os.fsdecode(b"\xe9.png")).write_bytes(b"")
    code, out, _ = ringside("data", "check", str(photos))
    assert code == 1
    assert "\x1b" not in out
    assert r"cat/\x1b[2Jx.png" in out
    assert r"names are not UTF-8 (rename them): 1 of the files and folders, cat/\xe9.png" in out
    assert json.loads(ringside("data", "check", str(photos), "--json")[1])["num_usable"] == 10


def test_nothing_left_to_use(ringside: Ringside, photos: Path) -> None:
    for path in photos.rglob("*.png"):
        path.write_bytes(b"")
    code, out, _ = ringside("data", "check", str(photos))
    assert code == 1
    assert "A run has nothing to use" in out


def test_as_json(ringside: Ringside, photos: Path, encode: Callable[..., bytes]) -> None:
    from PIL import Image

    (photos / "cat" / "0.png").write_bytes(b"")
    (photos / "cat" / "1.png").write_bytes(encode(Image.new("RGBA", (4, 4)), "PNG"))
    (photos / "bird").mkdir()
    code, out, _ = ringside("data", "check", str(photos), "--json")
    report = json.loads(out)
    section = (DOCS / "cli-json.md").read_text().partition("## `ringside data check")[2]
    documented = set(re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.MULTILINE))
    assert code == 1
    assert set(report) == KEYS == documented
    assert {key: set(report[key][0]) for key in INNER_KEYS} == INNER_KEYS
    assert set(report["notes"][0]) == INNER_KEYS["warnings"]
    for key, inner in INNER_KEYS.items():
        row = next(line for line in section.splitlines() if line.startswith(f"| `{key}` |"))
        assert [name for name in inner if f"`{name}`" not in row] == []
    assert (report["num_files"], report["num_usable"]) == (10, 9)
    assert [file["file"] for file in report["bad"]] == ["cat/0.png"]


def test_a_mistake_is_one_sentence_and_exit_code_2(ringside: Ringside, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    for argv, part in (
        (["/no/such/folder"], "'/no/such/folder'"),
        ([str(tmp_path / "x.csv")], "no column file_name"),
        ([str(tmp_path)], "holds no images"),
        (["emoji", "--workers", "0"], "--workers"),
    ):
        code, out, err = ringside("data", "check", *argv)
        assert (code, out) == (2, "")
        assert part in err
        assert err.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("heading", "codes"),
    [
        ("Bad files and rows", {*get_args(Fault), *get_args(RowFault)}),
        ("Warnings", set(get_args(WarningCode))),
    ],
)
def test_the_page_explains_every_code(heading: str, codes: set[str]) -> None:
    section = (DOCS / "data.md").read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    first_cells = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", " ".join(first_cells))) == codes
