"""What is left when bad files are left out has to be enough, and is looked at before a launch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from app import cli
from app.commands import running
from ringside.data import check_data, open_data, parse_data
from ringside.data.discovery import count_training
from ringside.data.folder import listing
from ringside.errors import DataError

AddImages = Callable[..., Path]
Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """The last line of `ringside run single --skip-bad`, which must not launch anything."""
    monkeypatch.setattr(running, "start_spec", lambda *_, **__: pytest.fail("launched"))

    def run(data: Path, batch: int) -> str:
        argv = ["run", "single", "--data", str(data), "--batch", str(batch), "--skip-bad"]
        with pytest.raises(SystemExit) as left:
            cli.main(argv)
        assert left.value.code == 2
        return capsys.readouterr().err.splitlines()[-1]

    return run


def spoil(root: Path, *names: str) -> None:
    for name in names:
        (root / name).write_bytes(b"<html>")


@pytest.fixture
def photos(add_images: AddImages) -> Path:
    """Ten training images, two for validation, one of each class."""
    root = add_images(*(f"{i}.png" for i in range(12)))
    rows = [f"{i}.png,{'ab'[i % 2]},{'train' if i < 10 else 'val'}" for i in range(12)]
    (root / "metadata.csv").write_text("\n".join(["file_name,label,split", *rows]))
    return root


@pytest.mark.parametrize("is_large", [False, True])
def test_fewer_than_a_step(
    photos: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    spoil(photos, "0.png", "3.png")
    if is_large:  # to be counted in a moment, but all of it was decoded just now
        monkeypatch.setattr(listing, "SMALL_ENTRIES", 3)
    said = refused(photos, 10)
    assert said.endswith(
        "The data has 8 training images and one step takes 10 (1 process x 10); choose a batch of "
        "at most 8."
    )


def test_a_table_whose_every_row_is_bad(tmp_path: Path, refused: Refused) -> None:
    table = tmp_path / "t.csv"
    table.write_text("file_name,label\nno.png,a\n../x.png,b\nt.csv,\n")
    report = check_data(str(table))
    assert (report.num_usable, len(report.bad)) == (0, 3)
    assert {c.name: (c.train, c.val) for c in report.classes} == {"a": (0, 0), "b": (0, 0)}
    assert refused(table, 2).endswith(
        f"No image of {table} can be used: mend its bad files and rows, or choose other data."
    )
    with pytest.raises(DataError, match=r"3 of 3 rows in .* cannot be used: .*\. Mend the rows"):
        open_data(parse_data(str(table)))


def test_a_class_that_goes_with_its_only_images_is_named(add_images: AddImages) -> None:
    names = [f"{kind}/{i}.png" for kind in ("cat", "dog", "owl") for i in range(3)]
    root = add_images(*names)
    spoil(root, "owl/0.png", "owl/1.png", "owl/2.png")
    report = check_data(str(root))
    lost = [note.message for note in report.warnings if note.code == "lost-class"]
    assert lost == ["No class of a run, because all images of it are left out: owl."]
    data = open_data(parse_data(str(root)), skip=report.skip)
    assert data.classes == ("cat", "dog")
    assert lost[0] in data.notes
    spoil(root, "dog/0.png")  # the class keeps two others
    assert open_data(parse_data(str(root)), skip={"dog/0.png"}).classes == ("cat", "dog", "owl")


def test_a_class_that_only_rows_without_files_name_is_named_too(photos: Path) -> None:
    with (photos / "metadata.csv").open("a") as file:
        file.write("\nno.png,unicorn,train\n")
    report = check_data(str(photos))
    assert any("left out: unicorn." in note.message for note in report.warnings)
    data = open_data(parse_data(str(photos)), skip=report.skip)
    assert any("left out: unicorn." in note for note in data.notes)
    assert data.classes == ("a", "b")


def test_one_class_alone_cannot_be_told_apart(add_images: AddImages, refused: Refused) -> None:
    root = add_images(*(f"{kind}/{i}.png" for kind in ("cat", "dog") for i in range(4)))
    spoil(root, *(f"dog/{i}.png" for i in range(4)))
    sentence = f"All usable images of {root} are of one class, 'cat': a run tells at least two"
    assert sentence in refused(root, 2)
    report = check_data(str(root))
    assert report.num_usable == 0
    assert sentence in next(n.message for n in report.warnings if n.code == "no-run")


def test_without_a_check_counting_stays_quick_and_silent(photos: Path) -> None:
    """Only what was left out on purpose is looked at so closely."""
    spec = parse_data(str(photos))
    (photos / "metadata.csv").write_text("file_name,label\nno.png,a\n")
    assert count_training(spec, 100) is None
    with pytest.raises(DataError, match="can be used"):
        count_training(structs.replace(spec, skip=("no.png",)), 100)
