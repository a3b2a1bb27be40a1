"""A checkpoint is replaced whole or not at all, and a full disk costs nothing but the new one."""

from __future__ import annotations

import shutil
import subprocess
from collections import namedtuple

import msgspec
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from ringside.checkpoints import Thresholds, find_model, read_about, read_thresholds
from ringside.errors import RunDirError, SetupError
from ringside.rundir import create_run_dir
from training import checkpoint

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def run(root):
    return create_run_dir(root)


def about(epoch):
    return {
        "classes": ["cat", "dog"], "epoch": epoch, "model": "resnet18", "task": "multi_label",
        "image_size": 32,
    }  # fmt: skip


def weights(value):
    return {"layer.weight": torch.full((2, 2), float(value))}


def saved_value(run, name="last"):
    return load_file(run.checkpoints / name / "model.safetensors")["layer.weight"][0, 0].item()


def test_the_newer_one_replaces_the_older(run):
    for epoch in (1, 2):
        checkpoint.save(run, "last", weights(epoch), about(epoch))
    saved = load_file(run.checkpoints / "last/model.safetensors")
    assert saved["layer.weight"].tolist() == [[2, 2], [2, 2]]
    assert [path.name for path in run.checkpoints.iterdir()] == ["last"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        SafetensorError("IoError: No space left on device"),  # what safetensors raises
        RuntimeError("PytorchStreamWriter failed: No space left on device"),  # and torch
    ],
)
def test_a_failed_save_keeps_the_older_one_and_frees_its_space(run, monkeypatch, error):
    checkpoint.save(run, "last", weights(1), about(1))

    def full_disk(tensors, path):
        path.write_bytes(b"half")
        raise error

    monkeypatch.setattr(checkpoint, "save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(run, "last", weights(2), about(2))
    assert saved_value(run) == 1
    assert [path.name for path in run.checkpoints.iterdir()] == ["last"]


def test_too_little_space_is_said_before_anything_is_written(run, monkeypatch):
    checkpoint.save(run, "last", weights(1), about(1))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 3_000_000))
    monkeypatch.setattr(checkpoint, "save_file", lambda *_: pytest.fail("nothing may be written"))
    state = {"optimizer": {"a": [torch.zeros(1_000_000)], "b": torch.zeros(1, dtype=torch.int64)}}
    with pytest.raises(RunDirError, match=r"needs 5\.0 MB and 3\.0 MB are free in .*checkpoints"):
        checkpoint.save(run, "last", weights(2), about(2), state)
    assert saved_value(run) == 1


def test_weights_that_have_changed_are_not_used(run):
    folder = checkpoint.save(run, "best", weights(1), about(1))
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (folder / "model.safetensors").write_bytes(content)
    assert load_file(folder / "model.safetensors")  # which does not notice
    with pytest.raises(SetupError, match=r"model\.safetensors is not what was written"):
        checkpoint.load_model(folder, read_about(folder))


def test_the_checksums_are_those_of_coreutils(run):
    folder = checkpoint.save(run, "last", weights(1), about(1), {"step": 1})
    names = ("classes.json", "model.safetensors", "thresholds.json", "training.pt")
    words = subprocess.run(
        ["sha256sum", *names], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.split()
    assert read_about(folder).checksums == dict(zip(words[1::2], words[::2], strict=True))


def test_the_needed_bytes_are_those_of_the_tensors():
    half = torch.zeros(3, 5, dtype=torch.float16)
    nested = {"a": half, "b": [half, {"c": (half, "text", 7, None)}]}
    assert checkpoint.tensor_bytes(nested) == 3 * 30


def test_thresholds_and_their_origin_stand_beside_the_weights(run):
    chosen = Thresholds(epoch=3, num_evaluated=320, thresholds={"cat": 0.25, "dog": None})
    folder = checkpoint.save(run, "best", weights(1), about(1), None, chosen)
    assert read_thresholds(folder) == chosen
    assert (read_thresholds(folder).of("cat"), read_thresholds(folder).of("dog")) == (0.25, 0.5)
    assert read_about(folder).classes == ("cat", "dog")


def test_an_adopted_checkpoint_outlives_the_run_it_came_from(run, root):
    other = create_run_dir(root)
    source = checkpoint.save(other, "best", weights(7), about(7))
    checkpoint.adopt(run, "best", source)
    size = (run.checkpoints / "best/model.safetensors").stat()
    assert size.st_nlink == 2  # it costs no space
    checkpoint.save(other, "best", weights(8), about(8))
    assert saved_value(run, "best") == 7
    shutil.rmtree(other.path)
    assert saved_value(run, "best") == 7


def test_it_is_copied_where_it_cannot_be_linked(run, root, monkeypatch):
    source = checkpoint.save(create_run_dir(root), "best", weights(7), about(7))

    def refuse(*_):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    checkpoint.adopt(run, "best", source)
    assert saved_value(run, "best") == 7


def test_a_model_is_found_by_run_by_folder_and_by_words(run, root):
    folder = checkpoint.save(run, "last", weights(1), about(1))
    run.spec.write_text("{}")
    for text in (str(folder), str(run.path), run.id, run.name, "last"):
        assert find_model(root, text, "last") == folder
    with pytest.raises(RunDirError, match=r"no checkpoint 'best'.*--checkpoint last"):
        find_model(root, run.name, "best")
    with pytest.raises(RunDirError, match=r"neither a run nor a folder with model\.safetensors"):
        find_model(root, str(root), "best")


def test_a_newer_or_damaged_description_is_refused_in_a_sentence(run):
    folder = checkpoint.save(run, "last", weights(1), about(1))
    described = msgspec.json.decode((folder / "about.json").read_bytes())
    (folder / "about.json").write_bytes(msgspec.json.encode({**described, "format": 99}))
    with pytest.raises(RunDirError, match="update Ringside"):
        read_about(folder)
    (folder / "about.json").write_text("{")
    with pytest.raises(RunDirError, match="does not describe a model"):
        read_about(folder)
