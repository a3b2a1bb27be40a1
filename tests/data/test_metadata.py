"""Metadata files in all the layouts that people write, and those that cannot be used."""

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from ringside.data import open_data, parse_data
from ringside.data.images import ImageData
from ringside.errors import DataError

AddImages = Callable[..., Path]
Opened = Callable[[Path], ImageData]
LabelsOf = Callable[[ImageData], dict[str, list[str]]]

PAIRS = {"1.png": ["red shirt", "blue jeans"], "2.png": ["red shirt"], "3.png": ["blue jeans"]}


def csv_of(separator: str, delimiter: str = ",") -> str:
    rows = [f'{name}{delimiter}"{separator.join(labels)}"' for name, labels in PAIRS.items()]
    return "\n".join([f"file_name{delimiter}labels", *rows, f"4.png{delimiter}"])


LAYOUTS = {
    "semicolon": ("metadata.csv", csv_of(";")),
    "semicolon and space": ("metadata.csv", csv_of(" ; ")),
    "bar": ("metadata.csv", csv_of("|")),
    "comma": ("metadata.csv", csv_of(",")),
    "line break": ("metadata.csv", csv_of("\n")),
    "semicolon twice": ("metadata.csv", csv_of(";", ";")),
    "Windows": ("metadata.csv", "\ufeff" + csv_of(";").replace("\n", "\r\n")),
    "list as text": (
        "metadata.csv",
        "file_name,labels\n"
        + "\n".join(f'{name},"{labels}"' for name, labels in PAIRS.items())
        + "\n4.png,[]\n",
    ),
    "one-hot": (
        "metadata.csv",
        "file_name,red shirt,blue jeans\n1.png,1,1\n2.png,1,0\n3.png,0,1\n4.png,0,0\n",
    ),
    "JSON lines": (
        "metadata.jsonl",
        "\n".join(json.dumps({"file_name": n, "labels": labels}) for n, labels in PAIRS.items())
        + '\n{"file_name": "4.png", "labels": null}\n',
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_layouts_give_the_same_labels(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf, layout: str
) -> None:
    root = add_images("1.png", "2.png", "3.png", "4.png")
    name, content = LAYOUTS[layout]
    (root / name).write_bytes(content.encode())
    data = opened(root)
    assert data.task == "multi_label"
    assert data.classes == ("blue jeans", "red shirt")
    assert labels_of(data) == {
        "1.png": ["blue jeans", "red shirt"],
        "2.png": ["red shirt"],
        "3.png": ["blue jeans"],
        "4.png": [],
    }


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metadata.csv", "file_name,label\n0001.png,007\n0002.png,012\n"),
        ("metadata.jsonl", '{"file_name":"0001.png","label":"007"}\n'
                           '{"file_name":"0002.png","label":"012"}\n'),
    ],
)  # fmt: skip
def test_leading_zeros_stay(add_images: AddImages, opened: Opened, name: str, content: str) -> None:
    root = add_images("0001.png", "0002.png")
    (root / name).write_text(content)
    data = opened(root)
    assert data.task == "single_label"
    assert data.classes == ("007", "012")


def test_a_single_label_is_never_cut(add_images: AddImages, opened: Opened) -> None:
    root = add_images("1.png", "2.png")
    (root / "metadata.csv").write_text('file_name,label\n1.png,"red; blue, and more"\n2.png,x\n')
    assert opened(root).classes == ("red; blue, and more", "x")


def test_the_split_column_counts_and_the_vocabulary_covers_both_splits(
    add_images: AddImages, opened: Opened
) -> None:
    names = [f"{i:02}.png" for i in range(40)]
    root = add_images(*names)
    rows = [f"{n},{'val' if i >= 35 else 'train'},clear" for i, n in enumerate(names)]
    rows[-1] = "39.png,Validation,blow_down"
    (root / "metadata.csv").write_text("\n".join(["file_name,split,labels", *rows]))
    data = opened(root)
    assert data.classes == ("blow_down", "clear")
    assert (len(data.train), len(data.val)) == (35, 5)
    assert data.val.targets.sum(axis=0).tolist() == [1, 4]
    (never,) = (note for note in data.notes if note.startswith("Never learned"))
    assert never.endswith("because only validation has images of it: blow_down.")


def test_metadata_inside_the_split_folders(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf
) -> None:
    root = add_images("train/1.png", "train/2.png", "val/1.png", "test/1.png")
    for split, names in (("train", "12"), ("val", "1"), ("test", "1")):
        lines = [json.dumps({"file_name": f"{n}.png", "labels": ["x", split]}) for n in names]
        (root / split / "metadata.jsonl").write_text("\n".join(lines))
    data = opened(root)
    assert labels_of(data) == {
        "train/1.png": ["train", "x"],
        "train/2.png": ["train", "x"],
        "val/1.png": ["val", "x"],
    }
    assert "Left out 1 test row: others are for validation." in data.notes


def test_split_follows_the_folders_that_file_names_begin_with(
    add_images: AddImages, opened: Opened
) -> None:
    root = add_images("train/1.png", "train/2.png", "val/1.png")
    (root / "metadata.csv").write_text(
        "file_name,labels\ntrain/1.png,x\ntrain/2.png,y\nval/1.png,x\n"
    )
    data = opened(root)
    assert [data.val.name(i) for i in range(len(data.val))] == [f"{root}/val/1.png"]


def test_paths_written_on_another_machine(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf
) -> None:
    root = add_images("1.png", "sub/a.png", "2.JPG", "unnamed.png")
    (root / "metadata.csv").write_text(
        f"file_name,labels\n{root}/1.png,x\nsub\\a.png,y\n2,x\nsub/../1.png,y\n"
    )
    with pytest.raises(
        DataError, match=r"1\.png .*line 2 of metadata.csv x; line 5 .* y: keep one"
    ):
        opened(root)
    (root / "metadata.csv").write_text(f"file_name,labels\n{root}/1.png,x\nsub\\a.png,y\n2,x\n")
    data = opened(root)
    assert labels_of(data) == {"1.png": ["x"], "sub/a.png": ["y"], "2.JPG": ["x"]}
    assert "Added the file ending to 1 name of the metadata." in data.notes
    assert "Not named in the metadata: 1 image, unnamed.png." in data.notes


def test_rows_without_a_usable_file_are_counted_and_named(
    add_images: AddImages, opened: Opened
) -> None:
    root = add_images("data/1.png", "x.png")
    (root / "data" / "metadata.csv").write_text(
        "file_name,labels\n1.png,a\n/etc/passwd,a\n../x.png,a\nmissing.png,a\nC:\\x.png,a\n"
    )
    with pytest.raises(DataError) as caught:
        opened(root / "data")
    message = str(caught.value)
    assert "4 of 5 rows" in message
    for name in ("/etc/passwd", "../x.png", "C:\\x.png"):
        assert f"{name} (line " in message
    assert message.count("outside the data folder") == 3
    assert "missing.png (line 5 of metadata.csv: no such file)" in message


def test_names_in_the_other_unicode_form_find_their_files(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf
) -> None:
    """macOS writes é as e with an accent behind it; tables of other systems have one character."""
    composed, apart = "no\u00ebl.png", "the\u0301.png"
    root = add_images(unicodedata.normalize("NFD", composed), unicodedata.normalize("NFC", apart))
    (root / "metadata.csv").write_text(f"file_name,labels\n{composed},x\n{apart},y\n")
    data = opened(root)
    assert labels_of(data) == {
        unicodedata.normalize("NFD", composed): ["x"], unicodedata.normalize("NFC", apart): ["y"],
    }  # fmt: skip
    assert any("Found 2 names" in note for note in data.notes)


def test_a_name_that_fits_files_of_both_forms_is_found_as_it_is_written(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf
) -> None:
    forms = [unicodedata.normalize(form, "no\u00ebl.png") for form in ("NFC", "NFD")]
    root = add_images(*forms)
    (root / "metadata.csv").write_text(f"file_name,labels\n{forms[0]},x\n{forms[1]},y\n")
    assert labels_of(opened(root)) == {forms[0]: ["x"], forms[1]: ["y"]}


def test_a_web_address_is_named_as_one(add_images: AddImages, opened: Opened) -> None:
    root = add_images("1.png")
    address = "https://example.com/2.png"
    (root / "metadata.csv").write_text(f"file_name,labels\n1.png,x\n{address},y\n")
    with pytest.raises(DataError, match=rf"{address} \(line 3 of metadata.csv: a web address"):
        opened(root)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has no rows"),
        ("colour,labels\nred,a\n", "no column file_name.*'colour, labels'"),
        ("1.png,a\n2.png,b\n", "no line with the names of its columns"),
        ("file_name,labels,labels\n1.png,a,b\n", "column 'labels' more than once"),
        ('file_name,labels\n1.png,"a\n2.png,b\n', "double quote that is not closed"),
        ("file_name,labels\n", "has no rows"),
        ("file_name,labels\n,a\n", r"In line 2 of .*metadata\.csv file_name is missing"),
        ("file_name,labels\n1.png,a,b\n", r"Line 2 of .*metadata\.csv has more cells than columns"),
        ("file_name,label\n1.png,\n", r"1\.png \(line 2 of metadata\.csv: the label is empty\)"),
        ("file_name,label,labels\n1.png,a,b\n", "both label and labels"),
        ("file_name,kind\n1.png,cat\n", "name the column of the labels"),
        ("file_name\n1.png\n", "name the column of the labels"),
        ("file_name,split,label\n1.png,hold-out,a\n", "'hold-out' in 1 row"),
        ("file_name,labels\n1.png,\n2.png,\n", "No usable image .* has a label"),
        ("file_name,labels\n1.png,a\n", "at least 2 images"),
        (
            "file_name,labels\n1.png,a\n2.png,a\n",
            r"have the same labels \(a\): .* add some without",
        ),
        ("file_name,split,labels\n1.png,val,a\n", "validation only"),
        (b"file_name,labels\n1.png,\xe9t\xe9\n", "not UTF-8"),
    ],
)
def test_an_unusable_csv_is_refused_in_a_sentence(
    add_images: AddImages, opened: Opened, content: str | bytes, message: str
) -> None:
    root = add_images("1.png", "2.png")
    raw = content if isinstance(content, bytes) else content.encode()
    (root / "metadata.csv").write_bytes(raw)
    with pytest.raises(DataError, match=message):
        opened(root)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"file_name": "1.png", "labels": ["a"]}\nnonsense',
            r"Line 2 of .*metadata\.jsonl is not a JSON object",
        ),
        ('{"file_name": "1.png", "labels": 0.5}', "0.5 is neither text nor a list"),
        ('{"file_name": ["1.png"], "labels": "a"}', "file_name is a list"),
        ('{"labels": "a"}', "no column file_name"),
        (
            '{"file_name": "1.png", "labels": "a"}\n{"labels": "a"}',
            r"In line 2 of .*metadata\.jsonl file_name is missing",
        ),
    ],
)
def test_an_unusable_json_lines_file_is_refused_in_a_sentence(
    add_images: AddImages, opened: Opened, content: str, message: str
) -> None:
    root = add_images("1.png", "2.png")
    (root / "metadata.jsonl").write_text(content)
    with pytest.raises(DataError, match=message):
        opened(root)


def test_two_metadata_files_are_ambiguous(add_images: AddImages, opened: Opened) -> None:
    root = add_images("1.png")
    (root / "metadata.csv").write_text("file_name,labels\n1.png,a\n")
    (root / "metadata.jsonl").write_text('{"file_name":"1.png","labels":"a"}')
    with pytest.raises(DataError, match=r"both metadata\.csv and metadata\.jsonl"):
        opened(root)


def test_a_folder_that_went_away_is_named(tmp_path: Path, opened: Opened) -> None:
    spec = parse_data(str(tmp_path))
    tmp_path.rmdir()
    with pytest.raises(DataError, match="does not exist"):
        open_data(spec)
