"""What real runs leave: checkpoints off the clock, early stopping, labels and exported models."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
import timm
import torch
from safetensors.torch import load_file
from sklearn.metrics import f1_score

from app import cli
from ringside import events as ev
from ringside.checkpoints import read_thresholds
from ringside.class_scores import read_class_scores
from ringside.data import open_data
from ringside.hardware import read_hardware
from ringside.launch.local import start_run
from ringside.predictions import read_predictions
from ringside.rundir import RunDir
from training import export, label

from tests.distributed.conftest import first_on_path, wait_for_end  # isort: skip

pytestmark = pytest.mark.distributed
SLEEP_S = 0.05
SLOW_WRITES = f"""
import os, time
fsync = os.fsync
os.fsync = lambda file: (time.sleep({SLEEP_S}), fsync(file))
"""
FILES_OF_A_CHECKPOINT = 5  # weights, training state, classes, thresholds, description


@pytest.fixture(scope="module")
def single(finished_run) -> RunDir:
    """The finished baseline."""
    return RunDir(Path(finished_run("single").path))


@pytest.fixture(scope="module")
def pictures(finished_run, tmp_path_factory) -> list[str]:
    """The validation pictures of the baseline as files, in the order of the split."""
    folder = tmp_path_factory.mktemp("pictures of o'brien")
    split = open_data(finished_run("single").spec.data).val
    files = [folder / f"{i:03d}.jpg" for i in range(len(split))]
    for i, file in enumerate(files):
        file.write_bytes(split.read(i))
    return list(map(str, files))


@pytest.fixture(scope="module")
def exported(single, tmp_path_factory) -> Path:
    """The best checkpoint as a folder for use elsewhere."""
    out = tmp_path_factory.mktemp("exported") / "model"
    export.export(single.checkpoints / "best", out, "torch")
    return out


@pytest.fixture
def labelled(capsys) -> Callable[..., np.ndarray]:
    """`labelled(folder, files)`: probabilities [n, c] in the order of the classes, as printed."""

    def run(folder: Path, files: list[str]) -> np.ndarray:
        assert label.main(["--json", "--top", "99", "--", str(folder), *files]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert [image["file"] for image in printed["images"]] == files
        classes = json.loads((folder / "classes.json").read_text())["classes"]
        rows = [{one["name"]: one["probability"] for one in image["labels"]}
                for image in printed["images"]]  # fmt: skip
        return np.array([[row[name] for name in classes] for row in rows])

    return run


def test_labels_are_the_predictions_of_the_evaluation(single, pictures, labelled):
    expected = read_predictions(single)
    found = labelled(single.checkpoints / "last", pictures)
    assert found.shape == (320, 16)
    np.testing.assert_allclose(found, expected.probabilities, rtol=0, atol=1e-5)


def test_thresholds_of_the_checkpoint_give_the_tuned_f1(single, finished_run):
    """Applied to the kept predictions, by scikit-learn, they give what the event says."""
    predictions, row = read_predictions(single), finished_run("single").epochs[-1]
    chosen = read_thresholds(single.checkpoints / "last")
    assert (chosen.epoch, chosen.num_evaluated) == (row.epoch, 320)
    limits = np.array(list(chosen.thresholds.values()), dtype=np.float32)
    decided = predictions.probabilities > limits
    f1 = f1_score(predictions.targets, decided, average="macro")
    assert row.f1_macro_tuned == pytest.approx(f1, abs=1e-9)
    assert row.f1_macro_tuned >= row.f1_macro
    wrong = (predictions.probabilities > 0.5) != predictions.targets
    assert row.hamming_loss == pytest.approx(wrong.mean(), abs=1e-12)
    last = read_class_scores(single).last
    assert sum(one.support for one in last.classes) == predictions.targets.sum()


def test_an_exported_folder_needs_no_ringside(exported, pictures, labelled):
    """Its own README, run as it stands in a bare interpreter, labels like `ringside label`."""
    text = (exported / "README.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    code += (
        "import sys\nimages = torch.stack([prepare(path) for path in sys.argv[1:]])\n"
        "assert 'ringside' not in sys.modules\n"
        "found = [probabilities(images), program(images).sigmoid()]\n"
        "print(json.dumps([part.tolist() for part in found]))\n"
    )
    argv = [sys.executable, "-P", "-c", code, *pictures[:3]]
    done = subprocess.run(argv, cwd=exported, check=True, capture_output=True, text=True)
    by_timm, by_program = map(np.array, json.loads(done.stdout))
    expected = labelled(exported, pictures[:3])
    # Pillow resizes with 8-bit weights, the trainer with torch: a level of 255 here and there.
    np.testing.assert_allclose(by_timm, expected, rtol=0, atol=5e-3)
    np.testing.assert_allclose(by_program, by_timm, rtol=0, atol=1e-5)


def test_an_exported_folder_loads_strictly_and_labels_like_its_checkpoint(
    single, exported, pictures, labelled
):
    model = timm.create_model("test_resnet", num_classes=16)
    model.load_state_dict(load_file(exported / "model.safetensors"), strict=True)
    assert sorted(path.name for path in exported.iterdir()) == [
        "README.md", "about.json", "classes.json", "model.pt2", "model.safetensors",
        "thresholds.json",
    ]  # fmt: skip
    best = single.checkpoints / "best"
    assert read_thresholds(exported) == read_thresholds(best)
    assert np.array_equal(labelled(exported, pictures[:40]), labelled(best, pictures[:40]))
    program = torch.export.load(exported / "model.pt2").module()
    images = torch.randn(5, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(program(images), model.eval()(images), rtol=1e-4, atol=1e-4)


def test_nothing_is_overwritten_and_onnx_says_what_is_missing(single, exported, tmp_path, capsys):
    best = str(single.checkpoints / "best")
    assert export.main([best, "--out", str(exported)]) == 2
    assert "choose another folder with --out" in capsys.readouterr().err
    if importlib.util.find_spec("onnx") and importlib.util.find_spec("onnxscript"):
        pytest.skip("onnx is installed here")
    assert export.main([best, "--format", "onnx", "--out", str(tmp_path / "o")]) == 2
    assert "`pip install onnx" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_an_onnx_program_gives_the_logits_of_the_model(single, tmp_path):
    """Where onnx, onnxscript and onnxruntime are installed; export itself compares them too."""
    for package in ("onnx", "onnxscript"):
        pytest.importorskip(package)
    onnxruntime = pytest.importorskip("onnxruntime")
    export.export(single.checkpoints / "best", tmp_path / "model", "onnx")
    model = timm.create_model("test_resnet", num_classes=16).eval()
    model.load_state_dict(load_file(tmp_path / "model/model.safetensors"))
    images = torch.randn(5, 3, 32, 32)
    session = onnxruntime.InferenceSession(tmp_path / "model/model.onnx")
    (found,) = session.run(None, {"images": images.numpy()})
    with torch.no_grad():
        torch.testing.assert_close(torch.from_numpy(found), model(images), rtol=1e-4, atol=1e-4)


def test_bad_pictures_are_named_and_the_rest_is_labelled(single, pictures, tmp_path, capfd):
    """Through the command, in a process of its own; a name that begins with a dash is no option."""
    bad = tmp_path / "text.jpg"
    bad.write_text("no picture")
    missing = tmp_path / "missing.jpg"
    with pytest.raises(SystemExit) as left:
        cli.main(["label", str(single.path), str(bad), pictures[0], str(missing), "--top", "1"])
    out, err = capfd.readouterr()
    assert left.value.code == 1
    assert re.fullmatch(rf"{re.escape(pictures[0])}: [\w -]+ 0\.\d{{3}}\n", out)
    assert f"{bad} is not an image" in err
    assert f"{missing} does not exist" in err


@pytest.fixture
def start(make_request, session_root):
    """A run of the small job with other settings, to its end."""

    def run(preset: str, epochs: int, **settings: object):
        overrides = {name: str(value) for name, value in settings.items()}
        spec = make_request(preset, epochs=epochs, overrides=overrides)
        return wait_for_end(start_run(spec, read_hardware(), session_root))

    return run


def test_checkpoints_within_an_epoch_are_off_the_clock_and_change_nothing(
    start, finished_run, monkeypatch, tmp_path
):
    """Syncing a file is made slow, on rank 0 only; no rank's epoch time contains that."""
    plain = finished_run("ddp").epochs
    (tmp_path / "sitecustomize.py").write_text(SLOW_WRITES)
    monkeypatch.setenv("PYTHONPATH", first_on_path(tmp_path))
    record = start("ddp", 2, save_every_steps=4, trackers="[tensorboard]", best_by="map_macro")
    assert record.state == "completed", record.failure
    # 10 steps an epoch: steps 4 and 8, 12 and 16 (the end of epoch 2 has its own).
    lines = ev.decode_lines((Path(record.path) / "events.jsonl").read_bytes())
    begins = [e.t for e in lines if isinstance(e, ev.PhaseStarted) and e.phase == "train"]
    for begin, trained in zip(
        begins, [e for e in lines if isinstance(e, ev.EpochTrained)], strict=True
    ):
        saved = [e for e in lines if isinstance(e, ev.CheckpointSaved) and begin < e.t < trained.t]
        assert [e.path for e in saved] == ["checkpoints/last"] * 2
        slept_s = len(saved) * FILES_OF_A_CHECKPOINT * SLEEP_S
        assert trained.t - begin - trained.epoch_time_s > slept_s
    for a, b in zip(plain, record.epochs, strict=True):
        assert a.auc_macro == b.auc_macro
        assert a.train_loss == pytest.approx(b.train_loss, rel=1e-6)  # summed in other windows
    assert len(list((Path(record.path) / "trackers").rglob("events.out.tfevents*"))) == 2
    maps = [row.map_macro for row in record.epochs]
    about = msgspec.json.decode((Path(record.path) / "checkpoints/best/about.json").read_bytes())
    assert about["best"]["by"] == "map_macro"
    assert about["best"]["value"] == max(maps)


def test_two_ranks_stop_early_together(start):
    """With hardly any learning rate a score soon fails to rise."""
    record = start("ddp", 15, learning_rate=1e-9, early_stop_epochs=1, best_by="f1_macro")
    assert record.state == "completed", record.failure
    values = [row.f1_macro for row in record.epochs]
    stalled = [i for i in range(1, len(values)) if values[i] <= max(values[:i])]
    assert len(values) < 15
    assert stalled == [len(values) - 1]
    (warning,) = [w for w in record.warnings if w.code == "early-stop"]
    assert f"after epoch {len(values)}: f1_macro has not risen" in warning.message
