"""Weights to begin with: which file or folder is meant, and whether it can be one.

That is told from a file's first bytes and its directory, so that no tensor is read.
A file that torch.save wrote is a zip archive with `data.pkl` (since torch 1.6), or a pickle that
begins with torch's magic number.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from ringside.checkpoints import ABOUT, WEIGHTS, find_model, read_about
from ringside.errors import SpecError
from ringside.words import say

SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".tar")

# pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2), as torch.serialization writes it first.
_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def find_weights(root: Path, text: str, model: str) -> Path:
    """The file that `text` names, a checkpoint folder, or the best checkpoint of a run of `root`.

    SpecError or RunDirError where there is none, where it holds no weights, or another model's.
    """
    path = Path(text).expanduser().absolute()
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise SpecError(say("weights.bad_suffix", text=text))
        _refuse_foreign(path)
        return path
    if path.suffix in SUFFIXES:
        raise SpecError(say("weights.no_file", text=text))
    folder = find_model(root, text, "best")
    _refuse_foreign(folder / WEIGHTS)
    if (folder / ABOUT).is_file():
        _refuse_other_model(text, read_about(folder).model, model)
    return folder


def _refuse_foreign(path: Path) -> None:
    if fault := fault_of(path):
        raise SpecError(say("weights.unusable", path=path, fault=fault))


def _refuse_other_model(text: str, theirs: str, ours: str) -> None:
    """The tag after the dot names weights of the same architecture."""
    if theirs.partition(".")[0] != ours.partition(".")[0]:
        raise SpecError(say("weights.other_model", text=text, theirs=theirs, ours=ours))


def fault_of(path: Path) -> str | None:
    """Why the file is no file of weights, as half a sentence; None when it looks like one."""
    try:
        if path.suffix == ".safetensors":
            return _fault_of_safetensors(path)
        return _fault_of_torch(path)
    except OSError as error:
        return error.strerror or say("weights.unreadable")
    except zipfile.BadZipFile:
        return say("weights.cut")


def _fault_of_safetensors(path: Path) -> str | None:
    from safetensors import SafetensorError, safe_open

    try:
        # Opening checks the header against the length of the file.
        with safe_open(path, framework="numpy"):
            return None
    except SafetensorError:
        return say("weights.no_safetensors")


def _fault_of_torch(path: Path) -> str | None:
    with path.open("rb") as stream:
        head = stream.read(len(_MAGIC))
    if head == _MAGIC:
        return None
    if not zipfile.is_zipfile(path):
        cut = head.startswith(b"PK\x03\x04")
        return say("weights.cut" if cut else "weights.not_saved")
    with zipfile.ZipFile(path) as archive:
        names = {name.rpartition("/")[2] for name in archive.namelist()}
    if "data.pkl" not in names:
        return say("weights.foreign_zip")
    return say("weights.torchscript") if "constants.pkl" in names else None
