"""`ringside export`: where the folder goes when nobody says so."""

from __future__ import annotations

import json

import pytest

from app import cli
from app.commands import models


@pytest.mark.parametrize(
    ("run", "folder"),
    [
        ("20260101-120000-calm-fox", "calm-fox-best-torch"),
        ("20260101-120000-calm-fox-2", "calm-fox-2-best-torch"),
        (None, "model-best-torch"),
        ("", "model-best-torch"),
        ("a-b-../../../outside", "model-best-torch"),
        ("a-b-/etc/cron.d/x", "model-best-torch"),
        ("20260101-120000-calm-fox/../../x", "model-best-torch"),
        ("20260101-120000-calm-fox\n", "model-best-torch"),
        ("a-b---help", "model-best-torch"),
    ],
)
def test_the_default_folder_is_here_whatever_the_model_says(tmp_path, monkeypatch, run, folder):
    """`about.json` may come from a stranger with the weights."""
    asked = []
    monkeypatch.setattr(models, "_in_torch", lambda module, argv: asked.append(argv) or 0)
    model = tmp_path / "given"
    model.mkdir()
    (model / "model.safetensors").touch()
    about = {"model": "m", "classes": ["a"], "task": "single_label", "image_size": 32, "run": run}
    (model / "about.json").write_text(json.dumps(about))
    with pytest.raises(SystemExit) as left:
        cli.main(["export", str(model)])
    assert left.value.code == 0
    ((*_, last),) = asked
    assert last == folder
