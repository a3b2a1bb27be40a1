"""Folders that hold a model: a run's checkpoints and what `ringside export` makes of them.

Both hold `model.safetensors`, `about.json`, `classes.json` and `thresholds.json`. A checkpoint
`last` also holds `training.pt`, from which training goes on.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from ringside.errors import RunDirError
from ringside.rundir import RunDir, check_format, find_run
from ringside.scores import Task
from ringside.spec import FORMAT
from ringside.words import say

WEIGHTS, STATE = "model.safetensors", "training.pt"
ABOUT, CLASSES, THRESHOLDS = "about.json", "classes.json", "thresholds.json"
COMMON_THRESHOLD = 0.5

CheckpointName = Literal["best", "last"]
T = TypeVar("T", "About", "Thresholds")


class BestScore(msgspec.Struct, frozen=True, kw_only=True):
    """The best value of a score and the epoch that reached it."""

    by: str
    value: float
    epoch: int


class About(msgspec.Struct, frozen=True, kw_only=True):
    """`about.json`: what somebody needs to use the weights, and where they come from.

    `mean` and `std` normalise RGB values from 0 to 1; those of ImageNet unless the file says more.
    `epoch` and `step` are where training goes on; `unevaluated` is an epoch before that which is
    trained and has no scores yet. `request` holds what an exact continuation depends on,
    `checksums` the SHA-256 of the files beside it (none of a checkpoint from before there were).
    """

    format: int = FORMAT
    model: str
    classes: tuple[str, ...]
    task: Task
    image_size: int
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    epoch: int | None = None
    step: int | None = None
    run: str | None = None
    preset: str | None = None
    scores: dict[str, Any] | None = None
    unevaluated: int | None = None
    data_fingerprint: str | None = None
    request: dict[str, Any] = {}
    checksums: dict[str, str] = {}
    best: BestScore | None = None


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """`thresholds.json`: per class the probability above which F1 was highest on validation.

    They were chosen after `epoch` on `num_evaluated` images. A class is None when it had no
    positive or no negative there, and all are None in a single-label task.
    """

    format: int = FORMAT
    epoch: int | None = None
    num_evaluated: int = 0
    thresholds: dict[str, float | None] = {}

    def of(self, name: str) -> float:
        """The threshold of a class, or the common one where none could be chosen."""
        found = self.thresholds.get(name)
        return COMMON_THRESHOLD if found is None else found


def find_model(root: Path, text: str, checkpoint: CheckpointName) -> Path:
    """The folder that `text` means: an exported model or checkpoint, or `checkpoint` of a run.

    A run is named by its folder, its id or its two words. RunDirError when nothing fits.
    """
    path = Path(text).expanduser().absolute()
    if (path / WEIGHTS).is_file():
        return path
    if (path / "spec.json").is_file():
        run = RunDir(path)
    elif "/" in text:
        raise RunDirError(say("runs_folder.no_model", text=text, weights=WEIGHTS))
    else:
        run = find_run(root, text)
    return _checkpoint_of(run, checkpoint)


def folders_of(run: RunDir, name: str) -> tuple[Path, Path]:
    """Where a checkpoint lies, and where its elder lies in the moment between two renames."""
    return run.checkpoints / name, run.checkpoints / f".{name}.old"


def find_resumable(run: RunDir) -> Path | None:
    """The folder that training can go on from; None without one."""
    found = (folder for folder in folders_of(run, "last") if (folder / STATE).is_file())
    return next(found, None)


def _checkpoint_of(run: RunDir, name: CheckpointName) -> Path:
    for folder in folders_of(run, name):
        if (folder / WEIGHTS).is_file():
            return folder
    other = "last" if name == "best" else "best"
    has_other = (run.checkpoints / other / WEIGHTS).is_file()
    hint = say("runs_folder.none_saved")
    if has_other:
        hint = say("runs_folder.other_checkpoint", other=other, name=other)
    raise RunDirError(say("runs_folder.no_checkpoint", run=run.name, name=name, hint=hint))


def read_about(folder: Path) -> About:
    """The description of a model folder; RunDirError when it cannot be read or is newer."""
    return _read(folder / ABOUT, About)


def read_thresholds(folder: Path) -> Thresholds:
    """The tuned thresholds; without a file there are none, and every class has the common one."""
    path = folder / THRESHOLDS
    return _read(path, Thresholds) if path.exists() else Thresholds()


def checksums_of(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a model folder but its description."""
    names = (name for name in (WEIGHTS, STATE, CLASSES, THRESHOLDS) if (folder / name).is_file())
    return {name: _sha256(folder / name) for name in names}


def damaged_file(folder: Path, about: About, *names: str) -> str | None:
    """The first of these files (all that are known without any) that is not as it was written.

    safetensors and torch read a file of the right length whatever its bytes are. A file that is not
    there is not damaged.
    """
    checksums = about.checksums
    for name in names or tuple(checksums):
        path = folder / name
        if name in checksums and path.is_file() and _sha256(path) != checksums[name]:
            return name
    return None


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read(path: Path, kind: type[T]) -> T:
    try:
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise RunDirError(say("runs_folder.unreadable", path=path, why=error.strerror)) from None
    except msgspec.DecodeError as error:
        raise RunDirError(say("runs_folder.no_description", path=path, error=error)) from None
    check_format(found.format, str(path))
    return found
