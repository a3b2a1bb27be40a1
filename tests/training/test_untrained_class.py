"""A class that only validation has: in no mean, and named where a person looks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from accelerate.state import AcceleratorState
from PIL import Image
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from ringside.class_scores import read_class_scores
from ringside.predictions import read_predictions
from ringside.run import fold_run
from ringside.rundir import create_run_dir
from ringside.spec import DataSpec
from training.control import Control
from training.engine import Engine
from training.session import Session


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """40 pictures of a and b; the one with blow_down validates."""
    rng = np.random.default_rng(0)
    rows = ["file_name,labels,split"]
    for i in range(40):
        pixels = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{i}.png")
        labels = "ab"[i % 2] + ";blow_down" * (i == 35)
        rows.append(f"{i}.png,{labels},{'val' if i >= 30 else 'train'}")
    (tmp_path / "metadata.csv").write_text("\n".join(rows))
    return tmp_path


def test_it_is_scored_by_nothing_and_named(make_spec, root, pictures):
    spec = make_spec("single", micro_batch=15, epochs=1, model="test_resnet")
    data = DataSpec(source="folder", path=str(pictures), image_size=16)
    AcceleratorState._reset_state(reset_partial_state=True)
    run = create_run_dir(root)
    run.write(run.spec, spec := msgspec.structs.replace(spec, data=data))
    control = Control(0, 1)
    control.run = run
    assert Session(Engine(spec), run, control).run() == "completed"
    record = fold_run(run)
    (row,) = record.epochs
    assert (row.undefined_classes, row.untrained_classes) == (("blow_down",),) * 2
    assert row.num_auc_classes == 2
    kept = read_predictions(run)
    assert kept.num_trained == [15, 15, 0]
    of_trained = kept.targets[:, :2], kept.probabilities[:, :2]
    assert row.auc_macro == pytest.approx(roc_auc_score(*of_trained), abs=1e-12)
    assert row.map_macro == pytest.approx(average_precision_score(*of_trained), abs=1e-12)
    f1 = [f1_score(kept.targets[:, i], kept.probabilities[:, i] > 0.5) for i in range(2)]
    assert row.f1_macro == pytest.approx(np.mean(f1), abs=1e-12)
    never = read_class_scores(run).last.classes[2]
    assert (never.name, never.support, never.num_trained) == ("blow_down", 1, 0)
    assert (never.auc, never.average_precision, never.f1) == (None, None, None)
    assert any("in no mean over classes" in w.message for w in record.warnings)
