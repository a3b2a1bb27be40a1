"""`ringside data prepare`: smaller pictures with the labels of their source, whole or not there."""

from __future__ import annotations

import contextlib
import json
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from PIL import Image

from app import cli
from ringside.data import check_data, decode_rgb, evaluation_crop, open_data, parse_data
from ringside.data.discovery import count_training, task_of
from ringside.data.images import FileImages, ImageData
from ringside.data.prepare import planning, writing
from ringside.data.prepare.files import INDEX, MARKER, PIXELS, Recipe, read_marker
from ringside.data.prepare.planning import plan_preparation
from ringside.data.prepare.writing import LOCK, prepare
from ringside.errors import DataError

Ringside = Callable[..., tuple[int, str, str]]
DOCS = Path(cli.__file__).parents[1] / "docs"
RAW = Recipe(format="raw", short_side=32)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of smooth pictures, 90 x 60 and 60 x 90; one is 16-bit grey, one rotated."""
    root = tmp_path / "photos"
    ramp = np.linspace(0, 1, 90)[None, :, None] * np.linspace(0.2, 1, 60)[:, None, None]
    for i in range(10):
        pixels = (ramp * np.array([255 - 20 * i, 25 * i, 128])).astype(np.uint8)
        path = root / ("cat", "dog")[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels if i % 3 else np.rot90(pixels)).save(path)
    Image.fromarray((ramp[:, :, 0] * 65535).astype(np.uint16)).save(root / "cat" / "deep.png")
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(root / "dog" / "turned.JPG", exif=exif, quality=95)
    return root


@pytest.fixture
def ringside(capsys: pytest.CaptureFixture[str]) -> Ringside:
    def run(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            cli.main(["data", "prepare", *argv])
        out, err = capsys.readouterr()
        code = left.value.code
        assert isinstance(code, int)
        return code, out, err

    return run


def made(source: Path | str, recipe: Recipe, out: Path | None = None) -> ImageData:
    plan = plan_preparation(parse_data(str(source)), recipe, out)
    return open_data(parse_data(str(prepare(plan, workers=1))))


def pictures(data: ImageData) -> Iterator[tuple[str, str, int]]:
    for role, split in (("train", data.train), ("val", data.val)):
        for i in range(len(split)):
            yield role, split.name(i), i


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("recipe", [Recipe(short_side=32), RAW], ids=["jpeg", "raw"])
def test_classes_splits_and_names_stay(photos: Path, recipe: Recipe, cache: Path) -> None:
    before = contents(photos)
    source, data = open_data(parse_data(str(photos))), made(photos, recipe)
    assert contents(photos) == before
    assert Path(str(data.spec.path)).is_relative_to(cache / "ringside" / "prepared")
    assert (data.task, data.classes, data.synthetic) == (source.task, source.classes, False)
    for ours, theirs in ((data.train, source.train), (data.val, source.val)):
        assert np.array_equal(ours.targets, theirs.targets)
        names = [theirs.name(i).removeprefix(f"{photos}/") for i in range(len(theirs))]
        if recipe.format == "jpeg":
            names = [name if name.endswith(".JPG") else f"{name}.jpg" for name in names]
            names = [f"{data.spec.path}/images/{name}" for name in names]
        assert [ours.name(i) for i in range(len(ours))] == names
    assert data.title == f"{source.title} (prepared)"
    assert data.notes[0] == f"Prepared from {photos}: {recipe.label}."
    assert count_training(data.spec, 1) == len(data.train)
    assert task_of(data.spec) == data.task
    report = check_data(data.spec)
    assert (report.is_fine, report.num_usable) == (True, 12)


def test_jpeg_is_the_source_in_small(photos: Path) -> None:
    source, data = open_data(parse_data(str(photos))), made(photos, Recipe(short_side=30))
    for (role, name, i), (_, file, _) in zip(pictures(source), pictures(data), strict=True):
        theirs, ours = getattr(source, role), getattr(data, role)
        original = decode_rgb(theirs.read(i), name)
        small = decode_rgb(ours.read(i), file)
        assert Image.open(file).format == "JPEG"
        height, width = original.shape[:2]
        assert small.shape == ((30, 45, 3) if height < width else (45, 30, 3))
        expected = np.asarray(
            Image.fromarray(original).resize(small.shape[1::-1], Image.Resampling.LANCZOS)
        )
        assert np.abs(expected.astype(int) - small).mean() < 4


def test_raw_is_the_centre_square_and_needs_no_codec(photos: Path) -> None:
    source, data = open_data(parse_data(str(photos))), made(photos, RAW)
    stored = np.load(Path(str(data.spec.path)) / PIXELS, mmap_mode="r")
    assert (stored.shape, stored.dtype) == ((12, 32, 32, 3), np.uint8)
    for row, (role, name, i) in enumerate(pictures(source)):
        pixels = getattr(data, role).pixels(i)
        assert np.array_equal(pixels, stored[row])
        assert pixels.flags.writeable
        original = decode_rgb(getattr(source, role).read(i), name)
        assert np.abs(evaluation_crop(original, 32).astype(int) - pixels).mean() < 4
        assert np.array_equal(decode_rgb(getattr(data, role).read(i), name), pixels)
    part = pickle.loads(pickle.dumps(data.val.part(1, 2)))
    assert np.array_equal(part.pixels(0), data.val.pixels(1))
    with pytest.raises(IndexError):
        data.train.pixels(len(data.train))


def test_small_pictures_are_not_made_larger(photos: Path) -> None:
    data = made(photos, Recipe(short_side=500))
    assert decode_rgb(data.train.read(0), "x").shape[:2] in ((60, 90), (90, 60))


def test_raw_squares_are_not_all_made_larger(photos: Path, tmp_path: Path) -> None:
    """One array has one size, so what is smaller grows; nobody wants a set of such pictures."""
    spec = parse_data(str(photos))
    with pytest.raises(DataError, match=r"short sides of up to 60 pixels, .* --short-side 60\.$"):
        plan_preparation(spec, Recipe(format="raw", short_side=64), tmp_path / "o")
    plan_preparation(spec, Recipe(format="raw", short_side=60), tmp_path / "o")
    for name in ("cat/small.png", "dog/tiny.png"):
        Image.new("RGB", (20, 30), (len(name), 9, 9)).save(photos / name)
    data = made(photos, Recipe(format="raw", short_side=60), tmp_path / "out")
    note = "2 pictures smaller than 60 pixels made larger, because raw squares have one size."
    assert data.notes[-1] == note
    smaller = made(photos, Recipe(format="raw", short_side=20), tmp_path / "other")
    assert not any("made larger" in one for one in smaller.notes)


def test_a_table_with_several_labels_and_sources_without_files(tmp_path: Path) -> None:
    for i in range(4):
        Image.new("RGB", (40, 40), (i, 60 * i, 0)).save(tmp_path / f"{i}.png")
    (tmp_path / "t.csv").write_text(
        "file_name,labels,split\n0.png,a;b,train\n1.png,,train\n2.png,b,train\n3.png,a,val\n"
    )
    data = made(tmp_path / "t.csv", RAW, tmp_path / "out" / "table")
    assert data.train.targets.tolist() == [[1, 1], [0, 0], [0, 1]]
    emoji = made("products:ci", Recipe(short_side=16), tmp_path / "out" / "drawn")
    assert emoji.synthetic
    assert (len(emoji.train), len(emoji.val)) == (640, 320)


def test_equal_names_in_any_case_stay_apart(tmp_path: Path) -> None:
    for name in ("a/1.png", "a/1.bmp", "a/1.PNG", "a/1.png.jpg", "b/1.png"):
        path = tmp_path / "set" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (9, 9), (len(name), path.stat().st_size if path.exists() else 7, 0)).save(
            path, "PNG"
        )
    data = made(tmp_path / "set", Recipe())
    files = [name for _, name, _ in pictures(data)]
    assert len({file.casefold() for file in files}) == 5
    assert all(Path(file).is_file() for file in files)


def test_files_that_go_while_they_are_counted_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may be preparing the same set."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"123")
    monkeypatch.setattr("os.walk", lambda f: [(str(f), [], ["a", "gone", "b"])])
    assert sum(stat.st_size for stat in planning.file_stats(tmp_path)) == 6


def test_a_second_call_finds_it_done_and_other_parameters_make_another(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = made(photos, Recipe(short_side=32))
    monkeypatch.setattr(writing, "_write", None)
    again = made(photos, Recipe(short_side=32))
    assert (again.spec, again.fingerprint) == (first.spec, first.fingerprint)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(photos.parent / "cache"))
    others = [made(photos, Recipe(short_side=32, quality=80)), made(photos, RAW)]
    Image.new("RGB", (60, 60), (1, 2, 3)).save(photos / "cat" / "new.png")
    others.append(made(photos, Recipe(short_side=32)))
    assert len({data.spec.path for data in (first, *others)}) == 4
    assert len({data.fingerprint for data in (first, *others)}) == 4
    lower = Recipe(format="raw", short_side=32, quality=10)  # which says nothing for raw
    shutil.rmtree(Path(str(others[1].spec.path)))
    (photos / "cat" / "new.png").unlink()
    assert made(photos, lower).spec == others[1].spec


@pytest.mark.parametrize("recipe", [Recipe(short_side=32), RAW], ids=["jpeg", "raw"])
def test_a_stopped_one_goes_on_and_is_not_there_before_the_end(
    photos: Path, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "SHARD_IMAGES", 2)
    whole = made(photos, recipe, tmp_path / "whole")
    plan = plan_preparation(parse_data(str(photos)), recipe, tmp_path / "out")

    def stop(done: int, total: int) -> None:
        if done >= 6:
            raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        prepare(plan, workers=1, progress=stop)
    assert not plan.folder.exists()
    assert (plan.partial / "done").exists()
    read: list[int] = []
    monkeypatch.setattr(
        FileImages, "read", lambda s, i: read.append(i) or Path(s.name(i)).read_bytes()
    )
    plan = plan_preparation(parse_data(str(photos)), recipe, tmp_path / "out")
    assert plan.written_bytes > 0
    read.clear()
    seen: list[tuple[int, int]] = []
    prepare(plan, workers=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(6, 12), (8, 12), (10, 12), (12, 12)]
    assert len(read) == 6
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert [p.name for p in tmp_path.iterdir() if "out" in p.name] == ["out"]
    assert open_data(parse_data(str(tmp_path / "out"))).fingerprint == whole.fingerprint


def test_begun_in_another_way_it_begins_anew(photos: Path, tmp_path: Path) -> None:
    spec, out = parse_data(str(photos)), tmp_path / "out"
    with contextlib.suppress(KeyboardInterrupt):
        prepare(plan_preparation(spec, RAW, out), workers=1, progress=_interrupt)
    prepare(plan_preparation(spec, Recipe(short_side=32), out), workers=1)
    assert sorted(path.name for path in out.iterdir()) == ["images", "index.json", "prepared.json"]


def _interrupt(done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_several_processes_make_the_same(photos: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(writing, "SHARD_IMAGES", 3)
    made(photos, RAW, tmp_path / "one")
    plan = plan_preparation(parse_data(str(photos)), RAW, tmp_path / "two")
    prepare(plan, workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_only_one_process_makes_a_set(photos: Path, tmp_path: Path) -> None:
    import filelock

    plan = plan_preparation(parse_data(str(photos)), RAW, tmp_path / "out")
    plan.partial.mkdir()
    with filelock.FileLock(plan.partial / LOCK), pytest.raises(DataError, match="being"):
        prepare(plan, workers=1)
    prepare(plan, workers=1)


def test_while_one_works_a_second_is_refused_and_later_finds_it_done(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both planned before either began."""
    spec, out = parse_data(str(photos)), tmp_path / "out"
    first, second = (plan_preparation(spec, RAW, out) for _ in range(2))
    refused: list[str] = []

    def meanwhile(done: int, total: int) -> None:
        with pytest.raises(DataError, match="being prepared by another process") as said:
            prepare(second, workers=1)
        refused.append(str(said.value))

    with contextlib.suppress(KeyboardInterrupt):
        prepare(first, workers=1, progress=_interrupt)
    prepare(first, workers=1, progress=meanwhile)  # on what the stopped one left
    assert refused
    before = contents(out)
    monkeypatch.setattr(writing, "_write", None)
    assert prepare(second, workers=1) == out
    assert contents(out) == before
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name] == ["out"]


def test_what_came_in_the_meantime_is_not_overwritten(photos: Path, tmp_path: Path) -> None:
    late = plan_preparation(parse_data(str(photos)), Recipe(short_side=32), tmp_path / "out")
    made(photos, RAW, tmp_path / "out")
    before = contents(tmp_path / "out")
    with pytest.raises(DataError, match=r"holds a set prepared from .*raw squares of 32"):
        prepare(late, workers=1)
    assert contents(tmp_path / "out") == before
    assert not late.partial.exists()


def test_places_that_hold_something_are_left_alone(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    other = made(photos, RAW, tmp_path / "other")
    spec = parse_data(str(photos))
    for out, message in (
        (tmp_path / "full", "is no prepared set"),
        (tmp_path / "file", "is no prepared set"),
        (tmp_path / "other", "holds a set prepared from .*raw squares of 32"),
        (photos / "small", "lies in the data folder"),
    ):
        with pytest.raises(DataError, match=message):
            plan_preparation(spec, Recipe(), out)
    with pytest.raises(DataError, match="is a prepared set"):
        plan_preparation(other.spec, RAW)
    assert contents(tmp_path / "full") == {"letter.txt": b"x"}


def test_too_little_room_is_said_before(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_free_bytes", lambda _: 1_000_000)
    with pytest.raises(
        DataError, match=r"takes about 9 MB and .* has 1 MB free: make room"
    ) as said:
        plan_preparation(
            parse_data(str(photos)), Recipe(format="raw", short_side=512), tmp_path / "o"
        )
    assert "--short-side" in str(said.value)


def test_the_estimate_is_near_what_it_becomes(photos: Path, tmp_path: Path) -> None:
    spec = parse_data(str(photos))
    for recipe, tolerance in ((RAW, 0.05), (Recipe(), 0.3)):
        plan = plan_preparation(spec, recipe, tmp_path / recipe.format)
        prepare(plan, workers=1)
        taken = planning._taken_bytes(plan.folder)
        assert plan.estimated_bytes == pytest.approx(taken, rel=tolerance, abs=20_000)


def test_a_damaged_set_is_named(photos: Path, tmp_path: Path) -> None:
    data = made(photos, RAW, tmp_path / "out")
    (tmp_path / "out" / "index.json").write_text("{}")
    with pytest.raises(DataError, match="damaged prepared set"):
        open_data(data.spec)
    marker = (tmp_path / "out" / MARKER).read_text().replace('"format": 1', '"format": 2', 1)
    (tmp_path / "out" / MARKER).write_text(marker)
    with pytest.raises(DataError, match="format 2, this version reads up to 1"):
        open_data(data.spec)


def _changed(file: Path, **fields: Any) -> None:
    """The JSON file with other values; a callable gets the old one."""
    content = json.loads(file.read_text())
    for name, value in fields.items():
        content[name] = value(content[name]) if callable(value) else value
    file.write_text(json.dumps(content))


def _named(name: str) -> Callable[[Path], None]:
    return lambda out: _changed(out / INDEX, files=lambda names: [name, *names[1:]])


def _numbered(*labels: int) -> Callable[[Path], None]:
    return lambda out: _changed(out / INDEX, labels=lambda rows: [[*labels], *rows[1:]])


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "up": (_named("../secret.png"), r"index.json: '../secret.png' names no file of the set"),
    "up inside": (_named("cat/../../../x"), "names no file of the set"),
    "absolute": (_named("/etc/passwd"), "names no file of the set"),
    "empty": (_named(""), "names no file of the set"),
    "zero byte": (_named("a\0b"), "names no file of the set"),
    "class beyond": (_numbered(2), r"index.json: there is no class number 2"),
    "class below": (_numbered(-1), r"index.json: there is no class number -1"),
    "two of one": (_numbered(0, 1), "not every picture has one class"),
    "none of one": (_numbered(), "not every picture has one class"),
    "names": (lambda out: _changed(out / INDEX, files=[]), "0 names for 12 pictures"),
    "text": (lambda out: _changed(out / INDEX, labels=["a"] * 12), r"index.json: Expected"),
    "no index": (lambda out: (out / INDEX).unlink(), r"index.json: No such file"),
    "counts": (lambda out: _changed(out / MARKER, num_train=-1, num_val=13), "prepared.json: "),
    "no marker": (lambda out: (out / MARKER).write_text("{"), "prepared.json: "),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_an_index_is_not_believed(photos: Path, tmp_path: Path, kind: str) -> None:
    damage, message = DAMAGE[kind]
    out = tmp_path / "out"
    spec = made(photos, Recipe(short_side=32), out).spec
    damage(out)
    with pytest.raises(DataError, match=rf"out is a damaged prepared set \(.*{message}") as said:
        open_data(spec)
    assert str(said.value).endswith("remove the folder and prepare the data again.")
    assert "\n" not in str(said.value)
    assert parse_data(str(out)).source == "prepared"


def _shorter(out: Path) -> None:
    content = (out / PIXELS).read_bytes()
    (out / PIXELS).write_bytes(content[: len(content) // 2])


def _saved(*shape: int, dtype: Any = np.uint8) -> Callable[[Path], None]:
    return lambda out: np.save(out / PIXELS, np.zeros(shape, dtype=dtype))


def _elsewhere(out: Path) -> None:
    (out / PIXELS).rename(out.parent / "far.npy")
    (out / PIXELS).symlink_to(out.parent / "far.npy")


PIXEL_DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda out: (out / PIXELS).unlink(), "no such file in the folder"),
    "short": (_shorter, "mmap length is greater than file size"),
    "empty": (lambda out: (out / PIXELS).write_bytes(b""), ""),
    "no array": (lambda out: (out / PIXELS).write_bytes(b"<html>"), ""),
    "rows": (_saved(11, 32, 32, 3), r"uint8 \[11, 32, 32, 3\] instead of uint8 \[12, 32, 32, 3\]"),
    "type": (_saved(12, 32, 32, 3, dtype=np.float32), "float32 .* instead of uint8"),
    "link": (_elsewhere, "no such file in the folder"),
}


@pytest.mark.parametrize("kind", PIXEL_DAMAGE)
def test_pixels_that_do_not_fit_are_named(photos: Path, tmp_path: Path, kind: str) -> None:
    damage, message = PIXEL_DAMAGE[kind]
    spec = made(photos, RAW, tmp_path / "out").spec
    damage(tmp_path / "out")
    with pytest.raises(DataError, match=rf"damaged prepared set \(pixels.npy: {message}") as said:
        open_data(spec)
    assert "\n" not in str(said.value)


def test_pictures_that_are_gone_or_lead_out_are_counted(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    data = made(photos, Recipe(short_side=32), out)
    Path(data.train.name(0)).unlink()
    Path(data.val.name(0)).unlink()
    Path(data.val.name(0)).symlink_to(photos / "cat" / "0.png")
    first = data.train.name(0).removeprefix(f"{out}/images/")
    with pytest.raises(DataError, match=rf"images: 2 of 12 pictures missing, the first is {first}"):
        open_data(data.spec)
    shutil.rmtree(out / "images")
    (out / "images").symlink_to(photos)
    with pytest.raises(DataError, match="images: 12 of 12 pictures missing"):
        open_data(data.spec)


def test_a_prepared_set_is_whole_or_refused_before_a_launch(photos: Path, tmp_path: Path) -> None:
    data = made(photos, Recipe(short_side=32), tmp_path / "out")
    Path(data.val.name(0)).write_bytes(b"<html>")
    report = check_data(data.spec)
    assert {bad.code for bad in report.bad} == {"no-image"}
    spec = structs.replace(data.spec, skip=tuple(report.skip))
    with pytest.raises(DataError, match=r"damaged prepared set \(images: .* cannot be used\)"):
        count_training(spec, 1)


def test_the_command_says_the_size_first_and_asks(
    ringside: Ringside, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = [str(photos), "--out", str(tmp_path / "out"), "--short-side", "32", "--workers", "1"]
    code, out, err = ringside(*argv)
    assert (code, out) == (2, "")
    assert re.search(r"12 images as JPEG, short side 32 .*, about 1 MB, in \S+out \(.* free\)", err)
    assert err.endswith("add --yes.\n")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert ringside(*argv)[0] == 1
    assert not (tmp_path / "out").exists()
    code, out, err = ringside(*argv, "--yes")
    assert code == 0
    assert out.endswith(f"train on them with --data {tmp_path / 'out'}\n")
    code, out, err = ringside(*argv)  # done: nothing to ask
    assert (code, err.strip()) == (0, "")
    assert "was prepared before" in out


def test_as_json(ringside: Ringside, photos: Path, tmp_path: Path) -> None:
    argv = [str(photos), "--out", str(tmp_path / "o"), "--format", "raw", "--short-side", "32"]
    code, out, _ = ringside(*argv, "--yes", "--json", "--workers", "1")
    found = json.loads(out)
    section = (DOCS / "cli-json.md").read_text().partition("## `ringside data prepare")[2]
    documented = set(re.findall(r"^\| `(\w+)` \|", section.partition("\n## ")[0], re.MULTILINE))
    assert code == 0
    assert set(found) == documented
    assert found["num_train"] + found["num_val"] == 12
    assert found["folder"] == str(tmp_path / "o")
    assert found["was_done"] is False
    again = json.loads(ringside(*argv, "--json")[1])
    assert (again["was_done"], again["taken_s"]) == (True, None)


def test_bad_files_stop_it_unless_told_otherwise(
    ringside: Ringside, photos: Path, tmp_path: Path
) -> None:
    (photos / "cat" / "0.png").write_bytes(b"<html>")
    argv = [str(photos), "--out", str(tmp_path / "o"), "--yes", "--workers", "1"]
    code, out, err = ringside(*argv)
    assert (code, out) == (2, "")
    assert "cat/0.png is not an image but an HTML page" in err
    assert "--skip-bad" in err
    assert not (tmp_path / "o").exists()
    code, _, err = ringside(*argv, "--skip-bad")
    assert code == 0
    assert "left out: cat/0.png: is not an image" in err
    marker = read_marker(tmp_path / "o")
    assert marker is not None
    assert (marker.num_images, marker.skipped) == (11, ("cat/0.png",))


@pytest.mark.parametrize(
    "argv", [["--format", "webp"], ["--short-side", "8"], ["--quality", "100"]]
)
def test_recipes_that_cannot_be_made(ringside: Ringside, photos: Path, argv: list[str]) -> None:
    code, _, err = ringside(str(photos), *argv)
    assert code == 2
    assert " ".join(argv) in err
    assert "the format is jpeg or raw" in err
