"""The check: every fault of a picture, of labels, and of copies is named; nothing is touched."""

from __future__ import annotations

import os
import shutil
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ringside.data import DataReport, check_data, odd_images, open_data, parse_data
from ringside.data.check import checking, decoding
from ringside.data.check.report import RULES
from ringside.data.images import FileImages, read_file
from ringside.data.pixels import PictureError
from ringside.data.pool import spread
from ringside.data.prepare.files import Recipe
from ringside.data.prepare.planning import plan_preparation
from ringside.data.prepare.writing import prepare
from ringside.errors import DataError

AddImages = Callable[..., Path]
Encode = Callable[..., bytes]


def bad(report: DataReport) -> dict[str, str]:
    return {file.file: file.code for file in report.bad}


def message(report: DataReport, code: str) -> str:
    found = [note.message for note in (*report.warnings, *report.notes) if note.code == code]
    assert len(found) == 1, (code, report.warnings, report.notes)
    return found[0]


def codes(report: DataReport) -> set[str]:
    return {note.code for note in report.warnings}


def counts(report: DataReport) -> dict[str, tuple[int, int]]:
    return {c.name: (c.train, c.val) for c in report.classes}


@pytest.fixture
def noise(encode: Encode) -> Callable[[int], bytes]:
    """A JPEG that is different for each seed."""

    def made(seed: int) -> bytes:
        values = np.random.default_rng(seed).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        return encode(Image.fromarray(values))

    return made


@pytest.fixture
def damaged(tmp_path: Path, noise: Callable[[int], bytes]) -> Path:
    """D1: six good JPEGs, one cut at half of its bytes, an empty one, and an HTML page."""
    root = tmp_path / "data"
    for name in ("cat", "dog"):
        (root / name).mkdir(parents=True)
    for i in range(6):
        (root / ("cat", "dog")[i % 2] / f"{i}.jpg").write_bytes(noise(i))
    whole = noise(9)
    (root / "cat" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (root / "dog" / "empty.jpg").write_bytes(b"")
    (root / "dog" / "page.jpg").write_bytes(b"<!DOCTYPE html><html>404</html>")
    return root


# --- D1: bad files ----------------------------------------------------------------------------


def test_bad_files_are_named_with_the_reason(damaged: Path) -> None:
    report = check_data(str(damaged))
    assert (report.num_files, report.num_usable) == (9, 6)
    assert bad(report) == {
        "cat/cut.jpg": "truncated", "dog/empty.jpg": "empty", "dog/page.jpg": "no-image",
    }  # fmt: skip
    assert report.num_train + report.num_val == 6
    assert not report.is_fine
    reasons = {file.file: file.reason for file in report.bad}
    assert "replace" in reasons["cat/cut.jpg"]
    assert "0 bytes" in reasons["dog/empty.jpg"]
    assert "HTML page" in reasons["dog/page.jpg"]
    assert str(damaged) not in "".join(reasons.values())


def test_what_the_check_counts_is_what_a_run_without_the_bad_files_gets(damaged: Path) -> None:
    report = check_data(str(damaged))
    data = open_data(parse_data(str(damaged)), skip=report.skip)
    assert (len(data.train), len(data.val)) == (report.num_train, report.num_val)
    assert counts(report) == {
        name: (int(data.train.targets[:, k].sum()), int(data.val.targets[:, k].sum()))
        for k, name in enumerate(data.classes)
    }
    names = {split.name(i) for split in (data.train, data.val) for i in range(len(split))}
    assert not names & {f"{damaged}/{file}" for file in report.skip}


def test_only_data_in_files_can_be_skipped() -> None:
    with pytest.raises(DataError, match="'emoji' holds no files that could be left out"):
        open_data(parse_data("emoji"), skip={"x.jpg"})


def test_a_file_that_vanishes_is_one_of_the_bad(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed_first(splits: Any) -> Any:
        (damaged / "cat" / "0.jpg").unlink()
        return decoding.chunks_of(splits)

    monkeypatch.setattr(checking, "chunks_of", removed_first)
    report = check_data(str(damaged))
    assert bad(report)["cat/0.jpg"] == "unreadable"
    assert "No such file" in report.bad[0].reason


def test_a_pipe_with_the_name_of_an_image_is_not_read(damaged: Path) -> None:
    os.mkfifo(damaged / "cat" / "pipe.jpg")
    assert "pipe.jpg" in message(check_data(str(damaged)), "ignored")


def test_a_bomb_and_a_film_are_refused_with_the_limit(
    damaged: Path, encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    (damaged / "cat" / "huge.png").write_bytes(encode(Image.new("1", (14_000, 7_000)), "PNG"))
    (damaged / "cat" / "bomb.png").write_bytes(encode(Image.new("1", (20_000, 10_000)), "PNG"))
    monkeypatch.setattr("ringside.data.images.MAX_FILE_BYTES", 10**5)
    (damaged / "cat" / "film.jpg").write_bytes(bytes(10**5 + 1))
    report = check_data(str(damaged), workers=1)
    reasons = {f.file: f.reason for f in report.bad if f.code == "too-large"}
    assert set(reasons) == {"cat/huge.png", "cat/bomb.png", "cat/film.jpg"}
    assert "14000 x 7000 pixels, more than the limit of 89,478,485" in reasons["cat/huge.png"]
    assert "89,478,485" in reasons["cat/bomb.png"]
    assert "MiB" in reasons["cat/film.jpg"]


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_only_regular_files_are_read(tmp_path: Path, kind: str) -> None:
    """What became a pipe after the listing would block a run for ever."""
    path = tmp_path / "x.jpg"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(PictureError, match=r"x.jpg (is no regular file|cannot be read \(Is a)"):
        read_file(str(path), "x.jpg")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux has /proc")
def test_a_file_whose_size_is_nothing_is_empty() -> None:
    """Such as those of /proc, which go on as long as somebody reads."""
    assert read_file("/proc/self/status", "x") == b""


def test_calls_and_memory_grow_with_the_files_and_no_faster(
    tmp_path: Path, add_images: AddImages
) -> None:
    def cost(num_files: int) -> tuple[int, int]:
        root = tmp_path / str(num_files)
        add_images(*(f"{num_files}/{'abc'[i % 3]}/{i}.png" for i in range(num_files)))
        num_calls = 0

        def count(frame: object, event: str, arg: object) -> None:
            nonlocal num_calls
            num_calls += event in ("call", "c_call")

        tracemalloc.start()
        sys.setprofile(count)
        try:
            check_data(str(root), workers=1)
            plan = plan_preparation(parse_data(str(root)), Recipe(), tmp_path / f"{num_files}.out")
            prepare(plan, workers=1)
        finally:
            sys.setprofile(None)
            peak_bytes = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return num_calls, peak_bytes

    cost(10)  # imports
    (few_calls, few_bytes), (many_calls, many_bytes) = cost(200), cost(800)
    assert many_calls < 4.5 * few_calls
    assert many_bytes - few_bytes < 600 * 4_000  # names and labels; a decoded file alone has 48


def test_a_set_without_a_usable_image_is_reported_too(tmp_path: Path) -> None:
    for name in ("a/1.jpg", "b/1.jpg"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"")
    report = check_data(str(tmp_path))
    assert (report.num_usable, report.is_fine) == (0, False)
    assert "No run can use this" in message(report, "no-run")
    assert counts(report) == {"a": (0, 0), "b": (0, 0)}


def test_a_bad_file_that_no_row_names_does_no_harm(damaged: Path) -> None:
    rows = [f"cat/{i}.jpg,{i}" for i in (0, 2, 4)]
    (damaged / "metadata.csv").write_text("\n".join(["file_name,labels", *rows]))
    report = check_data(str(damaged))
    assert {file.file for file in report.bad if not file.is_used} == set(bad(report))
    assert report.is_fine
    assert report.num_usable == 3


# --- D2 and kin: unusual images ---------------------------------------------------------------


@pytest.fixture
def unusual(tmp_path: Path, encode: Encode) -> Path:
    ramp = np.linspace(0, 65535, 256 * 64).round().astype(np.uint16).reshape(64, 256)
    turned = Image.Exif()
    turned[0x0112] = 6
    upright = Image.Exif()
    upright[0x0112] = 1
    pictures = {
        "16.png": encode(Image.fromarray(ramp), "PNG"),
        "float.tif": encode(Image.fromarray(np.ones((4, 4), dtype=np.float32)), "TIFF"),
        "cmyk.jpg": encode(Image.new("CMYK", (8, 8), (9, 9, 9, 9))),
        "palette.png": encode(Image.new("RGB", (8, 8), (1, 2, 3)).quantize(2), "PNG"),
        "alpha.png": encode(Image.new("RGBA", (8, 8), (1, 2, 3, 4)), "PNG"),
        "turned.jpg": encode(Image.new("RGB", (8, 8), (5, 5, 5)), "JPEG", exif=turned.tobytes()),
        "plain.jpg": encode(Image.new("RGB", (8, 8), (6, 6, 6)), "JPEG", exif=upright.tobytes()),
        "grey.png": encode(Image.new("L", (8, 8), 7), "PNG"),
    }
    for i, (name, content) in enumerate(pictures.items()):
        (tmp_path / "ab"[i % 2]).mkdir(exist_ok=True)
        (tmp_path / "ab"[i % 2] / name).write_bytes(content)
    return tmp_path


def test_unusual_images_are_counted_by_kind_and_stay_usable(unusual: Path) -> None:
    report = check_data(str(unusual))
    found = {u.kind: [Path(name).name for name in u.examples] for u in report.unusual}
    assert found == {
        "16-bit": ["16.png"], "float": ["float.tif"], "CMYK": ["cmyk.jpg"],
        "palette": ["palette.png"], "alpha": ["alpha.png"], "EXIF-rotated": ["turned.jpg"],
    }  # fmt: skip
    assert set(found) == set(RULES)
    assert all(u.num_images == 1 for u in report.unusual)
    assert report.is_fine
    assert report.num_usable == 8


def test_grey_that_training_would_refuse_is_bad(unusual: Path, encode: Encode) -> None:
    bytes_as_floats = Image.fromarray(np.full((4, 4), 255, dtype=np.float32))
    (unusual / "a" / "scan.tif").write_bytes(encode(bytes_as_floats, "TIFF"))
    report = check_data(str(unusual))
    assert bad(report) == {"a/scan.tif": "grey-range"}
    assert "save it as 8 or 16 bit" in report.bad[0].reason


def test_the_unusual_ones_can_be_looked_at_as_training_sees_them(unusual: Path) -> None:
    import io

    report = check_data(str(unusual))
    odd = {image.kind: image for image in odd_images(report, 16)}
    assert set(odd) == {u.kind for u in report.unusual}
    ramp = np.asarray(Image.open(io.BytesIO(odd["16-bit"].png)))
    assert ramp.shape == (16, 16, 3)
    assert ramp.mean() == pytest.approx(127.5, abs=10)  # neither black nor clipped to white
    (unusual / odd["CMYK"].file).unlink()
    assert "CMYK" not in {image.kind for image in odd_images(report)}


def test_16_bit_colours_count_although_the_decoder_cuts_them(unusual: Path) -> None:
    """A PNG of 16-bit RGB, which Pillow reads as 8 bits."""
    import struct
    import zlib

    def block(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    header = struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" + bytes(6))
    png = (
        b"\x89PNG\r\n\x1a\n" + block(b"IHDR", header) + block(b"IDAT", pixels) + block(b"IEND", b"")
    )
    (unusual / "a" / "deep.png").write_bytes(png)
    sixteen = next(u for u in check_data(str(unusual)).unusual if u.kind == "16-bit")
    assert sixteen.examples == ("a/16.png", "a/deep.png")


# --- D5 and D6: folders -----------------------------------------------------------------------


def test_numbered_and_nested_folders_have_one_order(add_images: AddImages) -> None:
    numbered = check_data(str(add_images(*(f"{n}/{i}.png" for n in (9, 10, 100) for i in "ab"))))
    assert list(counts(numbered)) == ["10", "100", "9"]


def test_nested_folders_count_for_the_top_class(add_images: AddImages) -> None:
    assert list(counts(check_data(str(add_images("a/x/1.png", "b/x/1.png", "b/y/1.png"))))) == [
        "a", "b",
    ]  # fmt: skip


def test_ignored_names_and_empty_folders_are_reported(add_images: AddImages) -> None:
    root = add_images("cat/1.png", "dog/1.png", ".ipynb_checkpoints/1.png")
    (root / "bird").mkdir()
    (root / "cat" / "list.txt").write_text("x")
    report = check_data(str(root))
    assert list(counts(report)) == ["cat", "dog"]
    assert "'bird' holds no images" in message(report, "empty-class")
    ignored = " ".join(note.message for note in report.notes if note.code == "ignored")
    assert ".ipynb_checkpoints" in ignored
    assert "1 .txt" in ignored


# --- D7: rare labels and splits ---------------------------------------------------------------


def test_a_label_that_only_validation_has_is_reported(add_images: AddImages) -> None:
    names = [f"{i:02}.png" for i in range(40)]
    root = add_images(*names)
    rows = [f"{n},{'val' if i >= 35 else 'train'},clear" for i, n in enumerate(names)]
    rows[-1] = "39.png,val,clear;blow_down"
    (root / "metadata.csv").write_text("\n".join(["file_name,split,labels", *rows]))
    report = check_data(str(root))
    assert counts(report) == {"blow_down": (0, 1), "clear": (35, 5)}
    assert "blow_down" in message(report, "only-in-val")
    assert "clear" in message(report, "no-negative-in-val")
    assert "no-positive-in-val" not in codes(report)


def test_a_label_that_validation_lacks_is_reported(add_images: AddImages) -> None:
    root = add_images("train/a/1.png", "train/b/1.png", "val/a/2.png")
    assert message(check_data(str(root)), "no-positive-in-val").endswith(": b.")


def test_images_without_a_label_are_reported(add_images: AddImages) -> None:
    root = add_images("1.png", "2.png", "3.png", "4.png")
    (root / "metadata.csv").write_text("file_name,labels\n1.png,x\n2.png,y\n3.png,\n4.png,x\n")
    assert "1 image, 3.png" in message(check_data(str(root)), "unlabelled")


# --- copies -----------------------------------------------------------------------------------


def test_copies_are_found_and_never_divided_by_a_drawn_split(add_images: AddImages) -> None:
    root = add_images(*(f"{name}/{i}.png" for name in "ab" for i in range(10)))
    for i in range(10):
        shutil.copy(root / "a" / f"{i}.png", root / "a" / f"copy{i}.png")
    report = check_data(str(root))
    assert "Exact copies: 10 images, a/" in message(report, "equal-files")
    assert "equal-in-both" not in codes(report)
    data = open_data(parse_data(str(root)))
    parts = [{split.read(i) for i in range(len(split))} for split in (data.train, data.val)]
    assert parts[0].isdisjoint(parts[1])
    assert (len(data.train), len(data.val)) == (report.num_train, report.num_val)


def test_copies_in_both_parts_and_with_other_labels_are_warnings(add_images: AddImages) -> None:
    root = add_images("train/a/1.png", "train/b/1.png", "val/a/2.png", "val/b/2.png")
    shutil.copy(root / "train/a/1.png", root / "val/a/seen.png")
    shutil.copy(root / "train/b/1.png", root / "train/a/b.png")
    report = check_data(str(root))
    assert "train/a/1.png = val/a/seen.png" in message(report, "equal-in-both")
    conflict = message(report, "conflicting-labels")
    assert "train/a/b.png (a) = train/b/1.png (b)" in conflict
    assert report.is_fine


# --- how it works -----------------------------------------------------------------------------


def test_processes_find_the_same_as_one(
    damaged: Path, unusual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(damaged, unusual, dirs_exist_ok=True)
    monkeypatch.setattr(decoding, "CHUNK_IMAGES", 2)
    serial = check_data(str(unusual), workers=1)
    assert len(serial.bad) == 3 * 2  # once in data/, once beside it
    assert check_data(str(unusual), workers=3) == serial


def test_no_more_chunks_are_under_way_than_keep_the_processes_busy(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding, "CHUNK_IMAGES", 1)
    images = FileImages.part
    cut: list[int] = []
    monkeypatch.setattr(FileImages, "part", lambda s, a, b: cut.append(a) or images(s, a, b))
    first = open_data(parse_data(str(damaged))).train
    found = spread(decoding.decode_chunk, decoding.chunks_of([first] * 20), 2)
    next(found)
    assert len(cut) <= 6 + 6
    found.close()


def test_progress_counts_every_picture(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "CHUNK_IMAGES", 4)
    seen: list[tuple[int, int]] = []
    check_data(str(damaged), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 9), (8, 9), (9, 9)]


def test_a_killed_process_is_a_sentence(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "chunks_of", lambda _: [decoding.Chunk(0, _Deadly())])
    with pytest.raises(DataError, match="was killed, most likely for lack of memory"):
        check_data(str(damaged), workers=2)


class _Deadly:
    """A split whose pictures take their process with them."""

    def __len__(self) -> int:
        os._exit(1)


def test_the_check_writes_nothing_and_reads_nothing_outside(
    damaged: Path, tmp_path: Path, noise: Callable[[int], bytes]
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x.jpg").write_bytes(noise(99))
    (damaged / "cat" / "out.jpg").symlink_to(secret / "x.jpg")
    (damaged / "cat" / "far").symlink_to(secret)
    (damaged / "metadata.csv").write_text(
        f"file_name,label\ncat/0.jpg,a\ndog/1.jpg,b\n../secret/x.jpg,a\n{secret}/x.jpg,b\n"
        "cat/out.jpg,a\ncat/far/x.jpg,b\n"
    )
    before = snapshot(tmp_path)
    report = check_data(str(damaged))
    assert snapshot(tmp_path) == before
    outside = {file.file for file in report.bad if file.code == "outside"}
    assert outside == {"../secret/x.jpg", f"{secret}/x.jpg", "cat/out.jpg", "cat/far/x.jpg"}
    assert report.num_usable == 2
    assert "2 links" in message(report, "links")


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every entry with its size and the time of its last change."""
    entries = [path for path in folder.rglob("*") if not path.is_symlink()]
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in entries}


def test_built_in_sources_are_fine() -> None:
    report = check_data("products:ci", workers=1)
    assert report.is_fine
    assert (report.num_files, report.root) == (960, None)
    assert odd_images(report) == ()
    assert check_data(parse_data("products:ci"), workers=1) == report


def test_a_missing_folder_is_a_mistake() -> None:
    with pytest.raises(DataError, match="'/no/such/folder' is neither"):
        check_data("/no/such/folder")
