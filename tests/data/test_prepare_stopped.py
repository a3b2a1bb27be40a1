"""`ringside data prepare` that is stopped or meets a bad file: what is made is kept, and used."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from app import cli
from ringside.data import open_data, parse_data
from ringside.data.prepare import shards, writing
from ringside.data.prepare.files import Recipe
from ringside.data.prepare.planning import plan_preparation
from ringside.data.prepare.writing import prepare

Ringside = Callable[..., tuple[int, str, str]]
RECIPES = {"jpeg": Recipe(short_side=32), "raw": Recipe(format="raw", short_side=32)}
MAX_END_S = 5.0


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ringside" / "prepared"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Ten pictures of 40 x 50 pixels; number 7 of them is a web page."""
    root = tmp_path / "photos"
    rng = np.random.default_rng(0)
    for i in range(10):
        path = root / "ab"[i % 2] / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)).save(path)
    (root / "b" / "7.png").write_bytes(b"<html>")
    return root


@pytest.fixture
def ringside(capsys: pytest.CaptureFixture[str]) -> Ringside:
    def run(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            cli.main(["data", "prepare", *argv, "--yes", "--workers", "1"])
        assert isinstance(left.value.code, int)
        return left.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def makings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pictures that are really made, one after the other."""
    names: list[str] = []
    for function in ("make_jpeg", "make_square"):
        make = getattr(shards, function)

        def noted(source: object, name: str, how: object, make: Callable = make) -> object:
            made = make(source, name, how)
            names.append(Path(name).name)
            return made

        monkeypatch.setattr(shards, function, noted)
    return names


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def _left_out(photos: Path) -> list[str]:
    return ["--skip-bad"]


def _mended(photos: Path) -> list[str]:
    Image.new("RGB", (40, 50), (9, 200, 9)).save(photos / "b" / "7.png")
    return []


@pytest.mark.parametrize("go_on", [_left_out, _mended])
@pytest.mark.parametrize("kind", RECIPES)
@pytest.mark.parametrize("out", [None, "out"])
def test_what_was_made_before_a_bad_file_is_used(
    kind: str, out: str | None, go_on: Callable[[Path], list[str]], photos: Path, tmp_path: Path,
    cache: Path, ringside: Ringside, makings: list[str],
) -> None:  # fmt: skip
    parent = tmp_path if out else cache
    argv = [str(photos), "--format", kind, "--short-side", "32"]
    argv += ["--out", str(tmp_path / out)] if out else []
    code, _, err = ringside(*argv)
    assert code == 2
    assert "what is made already is kept" in err
    first = list(makings)
    assert first
    makings.clear()
    options = go_on(photos)
    code, _, err = ringside(*argv, *options)
    assert (code, "made before" in err) == (0, kind == "jpeg")
    everything = {f"{i}.png" for i in range(10)} - ({"7.png"} if options else set())
    assert set(makings) == everything - set(first)
    assert len(makings) == len(everything) - len(first)
    (folder,) = (p for p in parent.iterdir() if p.name not in ("photos", "cache", "runs"))
    assert not folder.name.startswith(".")
    inside = {"jpeg": "images", "raw": "pixels.npy"}[kind]
    assert {p.name for p in folder.iterdir()} == {"index.json", inside, "prepared.json"}
    fresh, _, _ = ringside(*argv[:5], *options, "--out", str(tmp_path / "fresh"))
    assert (fresh, contents(folder)) == (0, contents(tmp_path / "fresh"))


def test_a_picture_that_changed_is_made_again(
    photos: Path, tmp_path: Path, ringside: Ringside, makings: list[str]
) -> None:
    argv = [str(photos), "--short-side", "32", "--out", str(tmp_path / "out")]
    ringside(*argv)
    changed = makings[0]
    makings.clear()
    (path,) = photos.rglob(changed)
    Image.new("RGB", (40, 50), (250, 1, 1)).save(path)
    assert ringside(*argv, "--skip-bad")[0] == 0
    assert changed in makings
    data = open_data(parse_data(str(tmp_path / "out")))
    names = [split.name(i) for split in (data.train, data.val) for i in range(len(split))]
    (made,) = (name for name in names if Path(name).name.startswith(changed))
    assert np.asarray(Image.open(made)).mean(axis=(0, 1)) == pytest.approx([250, 1, 1], abs=4)


@pytest.mark.parametrize("kind", RECIPES)
def test_attempts_at_three_states_of_the_data(
    kind: str, photos: Path, tmp_path: Path, makings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is stopped after some pictures, and nothing that still fits is made twice."""
    monkeypatch.setattr(writing, "SHARD_IMAGES", 2)
    recipe, out = RECIPES[kind], tmp_path / "out"
    _mended(photos)

    def attempt(stop_at: int) -> None:
        def stop(done: int, total: int) -> None:
            if stop_at <= done < total:
                raise KeyboardInterrupt

        plan = plan_preparation(parse_data(str(photos)), recipe, out)
        try:
            prepare(plan, workers=1, progress=stop)
        except KeyboardInterrupt:
            assert not out.exists()

    attempt(4)
    Image.new("RGB", (40, 50), (1, 2, 3)).save(photos / "a" / "new.png")
    attempt(6)
    Image.new("RGB", (40, 50), (3, 2, 1)).save(photos / "b" / "newer.png")
    attempt(99)
    assert sorted(makings) == sorted([*(f"{i}.png" for i in range(10)), "new.png", "newer.png"])
    whole = prepare(plan_preparation(parse_data(str(photos)), recipe, tmp_path / "w"), workers=1)
    assert contents(out) == contents(whole)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """600 pictures under names of their own, 40 ms each: some ten seconds of work for two."""
    down, across = np.mgrid[0:1400, 0:2100]
    pixels = np.stack([across % 256, down % 256, (across + down) % 256], axis=-1).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "one.jpg", quality=60)
    for i in range(600):
        path = tmp_path / "many" / ("train", "val")[i % 2] / "ab"[i // 2 % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(tmp_path / "one.jpg", path)
    return tmp_path / "many"


@pytest.fixture
def started(many: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The command in a process group of its own, as a terminal starts it, with two workers."""
    code = "from app.cli import main; main()"
    argv = ["data", "prepare", str(many), "--yes", "--workers", "2", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def alive(group: int) -> list[psutil.Process]:
    """Processes of a group; ended ones that nobody has asked for do not count."""

    def belongs(process: psutil.Process) -> bool:
        try:
            return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False

    return [process for process in psutil.process_iter() if belongs(process)]


def test_ctrl_c_ends_it_at_once_and_keeps_what_is_made(
    started: subprocess.Popen[str], many: Path, tmp_path: Path
) -> None:
    partial = tmp_path / ".out.partial"
    until = time.monotonic() + 60
    while len(list(partial.glob("images/**/*.jpg"))) < 5:
        assert started.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    begun = time.monotonic()
    os.killpg(started.pid, signal.SIGINT)
    _, err = started.communicate(timeout=60)
    assert time.monotonic() - begun < MAX_END_S
    assert started.returncode == 130
    stopping, stopped = err.strip().splitlines()[-2:]
    assert stopping == "stopping; what is made is kept"
    assert stopped == "stopped; the same command goes on from here"
    assert "Traceback" not in err
    while alive(started.pid):
        assert time.monotonic() - begun < MAX_END_S, "a worker is left"
        time.sleep(0.05)
    made = sum(len(json.loads(p.read_bytes())["pictures"]) for p in partial.glob("done/[0-9]*"))
    # No shard was finished first; with their queue they would have been three.
    assert 5 <= made == len(list(partial.glob("images/**/*.jpg"))) < writing.SHARD_IMAGES
    plan = plan_preparation(parse_data(str(many)), Recipe(), tmp_path / "out")
    seen: list[int] = []

    def first(done: int, total: int) -> None:
        seen.append(done)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(plan, workers=1, progress=first)
    assert seen == [made]
