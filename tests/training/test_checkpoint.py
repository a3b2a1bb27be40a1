"""A checkpoint is replaced whole or not at all."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load_file

from ringside.rundir import create_run_dir
from training import checkpoint


@pytest.fixture
def run(root):
    return create_run_dir(root)


def about(epoch):
    return {"classes": ["cat", "dog"], "epoch": epoch}


def weights(value):
    return {"layer.weight": torch.full((2, 2), float(value))}


def test_the_newer_one_replaces_the_older(run):
    for epoch in (1, 2):
        checkpoint.save(run, "last", weights(epoch), about(epoch))
    saved = load_file(run.checkpoints / "last/model.safetensors")
    assert saved["layer.weight"].tolist() == [[2, 2], [2, 2]]
    assert [path.name for path in run.checkpoints.iterdir()] == ["last"]


def test_a_failed_save_keeps_the_older_one(run, monkeypatch):
    checkpoint.save(run, "last", weights(1), about(1))

    def full_disk(tensors, path):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.save(run, "last", weights(2), about(2))
    saved = load_file(run.checkpoints / "last/model.safetensors")
    assert saved["layer.weight"].tolist() == [[1, 1], [1, 1]]
