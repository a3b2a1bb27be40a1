"""Tables of any name: layouts, columns, text that stays text, and paths of other machines."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from ringside.data import check_data, open_data, parse_data
from ringside.data.images import ImageData
from ringside.errors import DataError

AddImages = Callable[..., Path]
Opened = Callable[[Path], ImageData]
LabelsOf = Callable[[ImageData], dict[str, list[str]]]

ROWS: dict[str, list[str]] = {
    "1.png": ["red shirt", "blue jeans"], "2.png": ["red shirt"], "3.png": ["blue jeans"],
    "4.png": [],
}  # fmt: skip


def delimited(separator: str, delimiter: str, header: str = "photo,tags") -> str:
    lines = [f'{name}{delimiter}"{separator.join(labels)}"' for name, labels in ROWS.items()]
    return "\n".join([header.replace(",", delimiter), *lines])


def json_lines(of: Callable[[list[str]], Any]) -> str:
    return "\n".join(json.dumps({"image": n, "labels": of(labels)}) for n, labels in ROWS.items())


def flags(yes: str, no: str) -> str:
    lines = [
        f"{name},{yes if 'red shirt' in labels else no},{yes if 'blue jeans' in labels else no}"
        for name, labels in ROWS.items()
    ]
    return "\n".join(["image,red shirt,blue jeans", *lines])


LAYOUTS = {  # name of the file, content, and a part of the sentence that says what was detected
    "semicolon": ("photos.csv", delimited(";", ","), "separated by a semicolon, columns sep"),
    "bar": ("photos.csv", delimited("|", ","), "separated by a bar"),
    "comma": ("photos.csv", delimited(", ", ","), "separated by a comma, columns separated"),
    "semicolon twice": ("a.csv", delimited(";", ";"), "semicolon, columns separated by a semi"),
    "bar between columns": ("a.csv", delimited(";", "|"), "columns separated by a bar"),
    "tab": ("photos.tsv", delimited(";", "\t"), "columns separated by a tab"),
    "one-hot": ("photos.csv", flags("1", "0"), "one column of 0 and 1 per label"),
    "one-hot of pandas": ("photos.csv", flags("True", "False"), "one column of 0 and 1"),
    "one-hot as floats": ("photos.csv", flags("1.0", "0.0"), "one column of 0 and 1"),
    "JSON lists": ("photos.jsonl", json_lines(list), "as lists"),
    "JSON text": ("photos.jsonl", json_lines(json.dumps), "as lists"),
    "Python text": ("photos.jsonl", json_lines(str), "as lists"),
    "numpy text": ("p.jsonl", json_lines(lambda x: str(x).replace(",", "")), "as lists"),
    "Excel text": ("photos.tsv", delimited(";", "\t"), "columns separated by a tab"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_layouts_give_the_same_labels_and_say_what_was_detected(
    add_images: AddImages, opened: Opened, labels_of: LabelsOf, layout: str
) -> None:
    root = add_images(*ROWS)
    name, content, detected = LAYOUTS[layout]
    (root / name).write_bytes(content.encode("utf-16" if layout == "Excel text" else "utf-8"))
    data = opened(root / name)
    found = {Path(path).name: sorted(labels) for path, labels in labels_of(data).items()}
    assert found == {path: sorted(labels) for path, labels in ROWS.items()}
    report = check_data(str(root / name))
    assert detected in report.layout
    assert report.layout.startswith(f"{name}: files in column ")
    assert [c.name for c in report.classes] == ["blue jeans", "red shirt"]


@pytest.mark.parametrize("kind", ["list", "text", "dictionary", "one-hot"])
def test_parquet(add_images: AddImages, opened: Opened, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"path": list(ROWS), "price": [0.5, 1.5, None, 2.5]}
    if kind == "list":
        columns["labels"] = list(ROWS.values())
    elif kind == "one-hot":
        del columns["price"]
        for name in ("red shirt", "blue jeans"):
            columns[name] = [name in labels for labels in ROWS.values()]
    else:
        texts = pa.array([";".join(labels) for labels in ROWS.values()])
        columns["labels"] = texts.dictionary_encode() if kind == "dictionary" else texts
    root = add_images(*ROWS)
    pq.write_table(pa.table(columns), root / "photos.parquet")
    data = opened(root / "photos.parquet")
    assert data.classes == ("blue jeans", "red shirt")
    assert int(data.train.targets.sum() + data.val.targets.sum()) == 4


def test_parquet_that_holds_pictures_in_an_unknown_way_is_refused(
    tmp_path: Path, opened: Opened
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"image": [{"png": b"x", "size": 1}], "label": [1]})
    pq.write_table(table, tmp_path / "photos.parquet")
    with pytest.raises(DataError, match=r"holds the pictures themselves \(column 'image'\)"):
        opened(tmp_path / "photos.parquet")
    (tmp_path / "photos.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="not a readable parquet file"):
        opened(tmp_path / "photos.parquet")


NAMES = (
    "007", "NA", "n.a.", "null", "None", "1e5", "1.0", "True", "true", "nan", "inf",
    "-0", "0x1F", "1_000", "2024-01-01", "no",
)  # fmt: skip


@pytest.mark.parametrize("name", ["photos.csv", "photos.tsv", "photos.jsonl", "photos.parquet"])
def test_text_stays_text(add_images: AddImages, opened: Opened, name: str) -> None:
    """D4: no cell is guessed into a number, a blank or a truth value, in names and in labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = [f"{label}.png" for label in NAMES]
    root = add_images(*files)
    if name.endswith("sv"):
        rows = [("file_name", "label"), *((label, label) for label in NAMES)]
        delimiter = "\t" if name.endswith("tsv") else ","
        (root / name).write_text("\n".join(map(delimiter.join, rows)))
    elif name.endswith("jsonl"):
        lines = [json.dumps({"file_name": label, "label": label}) for label in NAMES]
        (root / name).write_text("\n".join(lines))
    else:
        pq.write_table(pa.table({"file_name": files, "label": list(NAMES)}), root / name)
    data = opened(root / name)
    assert data.classes == tuple(sorted(NAMES))
    names = {
        Path(split.name(i)).name for split in (data.train, data.val) for i in range(len(split))
    }
    assert names == set(files)


@pytest.mark.parametrize("form", ["{};{}", "{}\n{}", '["{}", "{}"]', "['{}', '{}']", "[{}, {}]"])
def test_text_stays_text_among_several_labels(
    add_images: AddImages, opened: Opened, form: str
) -> None:
    pairs = list(itertools.pairwise(NAMES))
    root = add_images(*(f"{i}.png" for i in range(len(pairs))))
    with (root / "photos.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("file_name", "labels"))
        writer.writerows((f"{i}.png", form.format(*pair)) for i, pair in enumerate(pairs))
    data = opened(root / "photos.csv")
    assert data.classes == tuple(sorted(NAMES))
    assert (data.train.targets.sum(axis=1) == 2).all()


def test_folder_names_stay_text(add_images: AddImages, opened: Opened) -> None:
    root = add_images(*(f"{name}/{i}.png" for name in NAMES for i in range(2)))
    assert opened(root).classes == tuple(sorted(NAMES))


def test_numbers_and_truth_values_of_json_keep_their_spelling(
    add_images: AddImages, opened: Opened
) -> None:
    root = add_images("1.png", "2.png")
    rows = [{"file_name": "1.png", "label": True}, {"file_name": "2.png", "label": 7}]
    (root / "photos.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert opened(root / "photos.jsonl").classes == ("7", "true")


LONG = "1.png,a\n\n2.png,b\n3.png,"


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("t.csv", f"file_name,label\n{LONG}\n", "line 5 of t.csv: the label"),
        ("t.tsv", f"file_name,label\r\n{LONG}\r\n".replace(",", "\t"), "line 5 of t.tsv: the"),
        (
            "t.csv",
            'file_name,note,label\n1.png,"x\ny\nz",a\n2.png,n,b\n3.png,n,\n',
            "line 6 of t.csv",
        ),
        (
            "t.jsonl",
            '{"file_name": "1.png", "label": "a"}\n\n{"file_name": "2.png", "label": "b"}\n'
            '{"file_name": "3.png"}\n',
            "line 4 of t.jsonl: the label",
        ),
        ("t.csv", 'file_name,label\n1.png,a\n\n2.png,"b\n3.png,c\n', "from line 4 on"),
        ("t.csv", "file_name,label\n1.png,a\n\n2.png,b,c\n", r"Line 4 of \S+/t.csv has more cells"),
        (
            "t.csv",
            "file_name,label\n\n1.png,a\n,b\n",
            r"In line 4 of \S+/t.csv file_name is missing",
        ),
        ("t.csv", "file_name,label\n\n9.png,a\n2.png,b\n", r"line 3 of t.csv: no such file"),
        (
            "t.csv",
            "file_name,label,split\n1.png,a,train\n\n2.png,b,hold\n",
            r"split is 'hold' in 1 row, first in line 4 of \S+/t.csv, expected",
        ),
    ],
)
def test_a_row_is_named_by_its_line_in_the_file(
    add_images: AddImages, name: str, content: str, place: str
) -> None:
    """As an editor counts: the header, blank lines, and the lines within quotes."""
    root = add_images("1.png", "2.png", "3.png")
    (root / name).write_bytes(content.encode())
    with pytest.raises(DataError, match=place):
        open_data(parse_data(str(root / name)))


def test_a_long_list_of_names_ends_in_a_number(add_images: AddImages) -> None:
    root = add_images(*(f"{i}.png" for i in range(10)))
    (root / "metadata.csv").write_text("file_name,labels\n0.png,a\n1.png,b\n")
    notes = open_data(parse_data(str(root))).notes
    named = "2.png, 3.png, 4.png, 5.png, 6.png and 3 more."
    assert f"Not named in the metadata: 8 images, {named}" in notes
    assert not any("..." in note for note in notes)


def test_parquet_has_rows_and_no_lines(add_images: AddImages) -> None:
    root = add_images("1.png", "2.png")
    cells = {"file_name": ["1.png", "2.png", "9.png"], "label": ["a", "b", "a"]}
    pq.write_table(pa.table(cells), root / "t.parquet")
    with pytest.raises(DataError, match=r"9\.png \(row 3 of t\.parquet: no such file"):
        open_data(parse_data(str(root / "t.parquet")))


def test_a_float_is_no_label(add_images: AddImages, opened: Opened) -> None:
    root = add_images("1.png")
    (root / "photos.jsonl").write_text('{"file_name": "1.png", "label": 1.5}')
    with pytest.raises(
        DataError, match=r"In line 1 of .*, column label: 1\.5 is neither text .*: write it as text"
    ):
        opened(root / "photos.jsonl")


def test_columns_are_known_in_any_case_and_others_do_not_disturb(
    add_images: AddImages, opened: Opened
) -> None:
    root = add_images("1.png", "2.png", "3.png")
    (root / "photos.csv").write_text(
        "Id,Image Path,Width,Label,Split\n7,1.png,0.5,x,train\n8,2.png,,y,TRAIN\n9,3.png,2,x,Val\n"
    )
    data = opened(root / "photos.csv")
    assert (data.task, data.classes) == ("single_label", ("x", "y"))
    assert data.val.name(0) == f"{root}/3.png"


def test_words_in_one_cell_are_one_name_and_a_warning(add_images: AddImages) -> None:
    root = add_images("1.png", "2.png", "3.png", "4.png")
    (root / "photos.csv").write_text(
        "image_name,tags\n1,clear primary\n2,clear water\n3,water primary\n4,primary clear\n"
    )
    report = check_data(str(root / "photos.csv"))
    assert len(report.classes) == 4
    blanks = next(note.message for note in report.warnings if note.code == "blanks")
    assert "4 different texts made of 3 words" in blanks
    assert "write ; between them" in blanks


@pytest.fixture
def travelled(add_images: AddImages) -> Path:
    """D8: one good row, one absolute path, one `..`, one back-slash, one without its ending, one
    that is not there."""
    root = add_images("x.png", "data/1.png", "data/sub/a.png", "data/2.JPG", "data/extra.png")
    (root / "data" / "photos.csv").write_text(
        "file_name,label\n1.png,a\n/etc/hostname,a\n../x.png,a\nsub\\a.png,b\n2,b\ngone.png,a\n"
    )
    return root / "data" / "photos.csv"


def test_paths_of_another_machine(travelled: Path, labels_of: LabelsOf) -> None:
    report = check_data(str(travelled))
    assert {file.file: file.code for file in report.bad} == {
        "/etc/hostname": "outside", "../x.png": "outside", "gone.png": "missing",
    }  # fmt: skip
    reasons = {file.file: file.reason for file in report.bad}
    assert reasons["gone.png"] == "line 7 of photos.csv: no such file"
    assert report.num_usable == 3
    assert any("ending to 1 name" in note.message for note in report.notes)
    orphans = next(note.message for note in report.warnings if note.code == "orphans")
    assert "1 image, extra.png" in orphans
    spec = parse_data(str(travelled))
    with pytest.raises(DataError, match=r"3 of 6 rows .* cannot be used"):
        open_data(spec)
    data = open_data(spec, skip=report.skip)
    root = travelled.parent
    assert {Path(path).relative_to(root).as_posix() for path in labels_of(data)} == {
        "1.png", "sub/a.png", "2.JPG",
    }  # fmt: skip


def test_only_the_folders_that_a_table_names_are_listed(
    add_images: AddImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = add_images("photos/1.png", "photos/2.png", "elsewhere/3.png")
    (root / "photos.csv").write_text("file_name,label\nphotos/1.png,a\nphotos/2.png,b\n")
    report = check_data(str(root / "photos.csv"))
    assert (report.num_files, report.num_usable) == (2, 2)
    assert "orphans" not in {note.code for note in report.warnings}


def test_a_link_to_a_folder_is_not_followed(
    add_images: AddImages, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    Image.new("RGB", (4, 4)).save(elsewhere / "s.png")
    root = add_images("1.png", "2.png")
    (root / "far").symlink_to(elsewhere)
    (root / "photos.csv").write_text("file_name,label\n1.png,a\n2.png,b\nfar/s.png,b\n")
    assert [(f.file, f.code) for f in check_data(str(root / "photos.csv")).bad] == [
        ("far/s.png", "outside")
    ]


def test_rows_that_repeat_count_once_and_rows_that_contradict_are_bad(
    add_images: AddImages,
) -> None:
    root = add_images("1.png", "2.png", "3.png")
    (root / "photos.csv").write_text(
        "file_name,labels\n1.png,a\n2.png,b;a\n2.png,a;b\n3.png,a\n3.png,b\n"
    )
    report = check_data(str(root / "photos.csv"))
    repeated = next(note.message for note in report.warnings if note.code == "duplicate-rows")
    assert "1 row, 2.png" in repeated
    (conflict,) = report.bad
    assert (conflict.file, conflict.code) == ("3.png", "conflicting-rows")
    assert "line 5 of photos.csv a; line 6 of photos.csv b: keep one row" in conflict.reason
    assert report.num_usable == 2


def test_a_row_without_its_only_label_is_bad(add_images: AddImages) -> None:
    root = add_images("1.png", "2.png", "3.png")
    (root / "photos.csv").write_text("file_name,label\n1.png,a\n2.png,\n3.png,b\n")
    report = check_data(str(root / "photos.csv"))
    assert [(f.file, f.code) for f in report.bad] == [("2.png", "no-label")]
    data = open_data(parse_data(str(root / "photos.csv")), skip=report.skip)
    assert len(data.train) + len(data.val) == 2


def test_a_table_beside_folders_without_classes_is_pointed_at(
    add_images: AddImages, opened: Opened
) -> None:
    root = add_images("images/1.png")
    (root / "labels.csv").write_text("file_name,label\nimages/1.png,a\n")
    with pytest.raises(DataError, match=rf"pass the table instead \(--data {root}/labels\.csv\)"):
        opened(root)


def test_a_table_is_a_data_set_of_its_own(add_images: AddImages, opened: Opened) -> None:
    root = add_images("1.png", "2.png")
    (root / "photos.csv").write_text("file_name,label\n1.png,a\n2.png,b\n")
    spec = parse_data("photos.csv", cwd=root)
    assert (spec.source, spec.path, spec.label) == ("folder", f"{root}/photos.csv", spec.path)
    assert open_data(spec).title == f"{root.name}/photos.csv"
    before = opened(root / "photos.csv").fingerprint
    (root / "photos.csv").write_text("file_name,label\n1.png,a\n2.png,c\n")
    assert opened(root / "photos.csv").fingerprint != before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a,b\nx,y\n", "name the column of the image files file_name"),
        ("file_name,class,category\n1.png,a,b\n", "both class and category: remove one column, or"),
        ("file_name,colour\n1.png,red\n", "see colour"),
    ],
)
def test_an_unusable_table_says_what_to_change(
    add_images: AddImages, opened: Opened, content: str, said: str
) -> None:
    root = add_images("1.png")
    (root / "photos.csv").write_text(content)
    with pytest.raises(DataError, match=said):
        opened(root / "photos.csv")
