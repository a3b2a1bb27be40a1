"""The scores through the `evaluate` library, loaded from the working tree without a network."""

from pathlib import Path

import evaluate
import numpy as np
import pytest

import ringside.scores
from ringside.scores import score

MODULE = Path(ringside.scores.__file__).parent / "ringside_scores"


@pytest.fixture
def metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> evaluate.Metric:
    monkeypatch.setattr("datasets.config.HF_DATASETS_OFFLINE", True, raising=False)
    return evaluate.load(str(MODULE), cache_dir=str(tmp_path))


def test_it_gives_the_numbers_of_score(metric: evaluate.Metric) -> None:
    rng = np.random.default_rng(1)
    targets = (rng.random((50, 3)) < 0.4).astype(np.uint8)
    probabilities = rng.random((50, 3), dtype=np.float32)
    for part in np.array_split(np.arange(50), 4):
        metric.add_batch(predictions=probabilities[part], references=targets[part])
    found = metric.compute(classes=["a", "b", "c"], threshold=0.4)
    expected = score(probabilities, targets, ["a", "b", "c"], "multi_label", threshold=0.4)
    assert found["num_evaluated"] == 50
    for name in ("auc_macro", "f1_macro", "f1_micro", "map_macro", "threshold"):
        assert found[name] == getattr(expected, name)
    assert found["per_class"][2]["true_positives"] == expected.per_class[2].true_positives


def test_single_label_and_default_names(metric: evaluate.Metric) -> None:
    found = metric.compute(
        predictions=[[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]],
        references=[[1, 0], [0, 1], [0, 1]],
        task="single_label",
    )
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert [one["name"] for one in found["per_class"]] == ["0", "1"]
