"""What is installed must work without the clone: presets, pictures and words come along."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ringside

CLONE = Path(ringside.__file__).parents[1]

LOOK = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import ringside
from ringside import presets
from ringside.data import open_data, parse_data
from ringside.words import say
folder = Path(ringside.__file__).parent
print(json.dumps({
    "root": str(folder.parent),
    "presets": sorted(p.name for p in presets.Library() if p.origin == "built-in"),
    "rendered": sorted(p.stem for p in presets.built_in_folder().glob("*.yaml")),
    "num_images": len(open_data(parse_data("emoji")).train),
    "notice": (folder / "data" / "emoji" / "NOTICE").read_text()[:40],
    "words": say("plan.one_process"),
}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel as `python -m build` makes it."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    done = subprocess.run(command, cwd=CLONE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site packages ä")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def look(folder: Path, cwd: Path) -> dict:
    """What a Python sees that finds Ringside in `folder`, started somewhere else."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", LOOK, str(folder)],
        cwd=cwd,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_wheel_shows_the_same_as_the_clone(unpacked, tmp_path):
    installed, cloned = look(unpacked, tmp_path), look(CLONE, tmp_path)
    assert installed.pop("root") == str(unpacked)
    assert cloned.pop("root") == str(CLONE)
    assert installed == cloned
    assert len(installed["presets"]) >= 11
    assert installed["rendered"] == installed["presets"]
    assert installed["num_images"] > 1000
    assert installed["words"] == "1 process"


def test_every_data_file_of_the_packages_is_in_the_wheel(unpacked):
    """A style sheet or a list of words that is left out breaks only the installed page."""
    for package in ("ringside", "training", "app", "accelerate_configs"):
        files = {
            path.relative_to(CLONE)
            for path in (CLONE / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        assert {path for path in files if not (unpacked / path).is_file()} == set()


def test_the_wheel_has_the_command_and_the_licences_and_nothing_else(unpacked):
    (info,) = unpacked.glob("*.dist-info")
    assert info.name == f"ringside-{ringside.__version__}.dist-info"
    assert "ringside = app.entry:main" in (info / "entry_points.txt").read_text()
    licences = {path.name for path in (info / "licenses").rglob("*") if path.is_file()}
    assert licences == {"LICENSE", "NOTICE"}
    tops = {path.name for path in unpacked.iterdir()}
    assert tops == {"ringside", "training", "app", "accelerate_configs", info.name}
