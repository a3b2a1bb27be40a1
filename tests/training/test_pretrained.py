"""Weights from files of every usual making; what does not fit is named."""

from __future__ import annotations

import argparse
import datetime
import zipfile

import pytest
import timm
import torch
from safetensors.torch import save_file

from ringside.data import write_classes
from ringside.errors import SetupError
from training.pretrained import read_weights, start_from

CLASSES = ("cat", "dog", "owl")


def fresh(num_classes: int = 3, seed: int = 1) -> torch.nn.Module:
    torch.manual_seed(seed)
    return timm.create_model("test_resnet", num_classes=num_classes)


@pytest.fixture
def donor():
    return fresh(seed=7).state_dict()


def prefixed(weights: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {f"{prefix}{name}": value for name, value in weights.items()}


WRAPPERS = {
    "plain": lambda w: w,
    "ddp": lambda w: prefixed(w, "module."),
    "compiled": lambda w: prefixed(w, "_orig_mod."),
    "ddp of compiled": lambda w: prefixed(w, "module._orig_mod."),
    "compiled ddp of compiled": lambda w: prefixed(w, "_orig_mod.module._orig_mod."),
    "regions compiled": lambda w: {n.replace("er1.", "er1._orig_mod."): v for n, v in w.items()},
    "state_dict": lambda w: {"state_dict": w, "epoch": 3},
    "model": lambda w: {"model": prefixed(w, "module."), "optimizer": {"state": {}}},
    "timm": lambda w: {
        "epoch": 3, "arch": "test_resnet", "args": argparse.Namespace(lr=0.1, model="x"),
        "state_dict": {n: torch.zeros_like(v) for n, v in w.items()},
        "state_dict_ema": prefixed(w, "module."), "metric": 71.5,
    },
}  # fmt: skip


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_torch_file_is_read_whatever_wrote_it(wrapper, donor, tmp_path):
    path = tmp_path / "weights.pth"
    torch.save(WRAPPERS[wrapper](donor), path)
    model = fresh()
    assert start_from(model, path, CLASSES) is None
    for name, value in model.state_dict().items():
        assert torch.equal(value, donor[name]), name


def test_safetensors_and_a_checkpoint_folder(donor, tmp_path):
    save_file(donor, tmp_path / "model.safetensors")
    write_classes(tmp_path / "classes.json", CLASSES)
    for source in (tmp_path / "model.safetensors", tmp_path):
        model = fresh()
        assert start_from(model, source, CLASSES) is None
        assert torch.equal(model.fc.weight, donor["fc.weight"])


def test_a_head_for_another_number_of_classes_stays_fresh(donor, tmp_path):
    save_file(donor, tmp_path / "w.safetensors")
    model, untouched = fresh(5), fresh(5)
    note = start_from(model, tmp_path / "w.safetensors", tuple("abcde"))
    assert "has 3 outputs, not 5" in note
    assert torch.equal(model.fc.weight, untouched.fc.weight)
    assert torch.equal(model.fc.bias, untouched.fc.bias)
    assert torch.equal(model.layer1[0].conv1.weight, donor["layer1.0.conv1.weight"])


def test_a_head_for_other_classes_stays_fresh(donor, tmp_path):
    """As many classes, in another order: every picture would begin with a wrong name."""
    save_file(donor, tmp_path / "model.safetensors")
    write_classes(tmp_path / "classes.json", ("dog", "cat", "owl"))
    model, untouched = fresh(), fresh()
    assert "other names or in another order" in start_from(model, tmp_path, CLASSES)
    assert torch.equal(model.fc.weight, untouched.fc.weight)


def test_missing_and_unexpected_names_are_counted_and_the_first_named(donor, tmp_path):
    names = list(donor)
    lacking = {name: value for name, value in donor.items() if not name.startswith("layer1")}
    num_missing = len(donor) - len(lacking)
    torch.save(lacking | {"extra.bias": torch.zeros(2)}, tmp_path / "w.pth")
    with pytest.raises(SetupError) as refused:
        start_from(fresh(), tmp_path / "w.pth", CLASSES)
    first = [name for name in names if name.startswith("layer1")][:3]
    assert f"it lacks {', '.join(first)} and {num_missing - 3} more ({num_missing} in all)" in str(
        refused.value
    )
    assert "the model has no extra.bias" in str(refused.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_is_named(value, donor, tmp_path):
    """Else the first loss would be none, and the learning rate be blamed for it."""
    donor["fc.bias"][1] = value
    torch.save(donor, tmp_path / "weights.pth")
    with pytest.raises(SetupError, match=r"not finite, in fc\.bias"):
        start_from(fresh(), tmp_path / "weights.pth", CLASSES)


def test_another_model_is_refused_by_shape(tmp_path):
    donor = fresh().state_dict()
    donor["conv1.0.weight"] = torch.zeros(1, 1)
    save_file(donor, tmp_path / "w.safetensors")
    with pytest.raises(SetupError, match="of another shape are conv1"):
        start_from(fresh(), tmp_path / "w.safetensors", CLASSES)


def test_a_model_is_left_alone_by_what_is_refused(donor, tmp_path):
    del donor["fc.bias"]
    save_file(donor, tmp_path / "w.safetensors")
    model, untouched = fresh(), fresh()
    with pytest.raises(SetupError, match=r"it lacks fc\.bias"):
        start_from(model, tmp_path / "w.safetensors", CLASSES)
    for name, value in model.state_dict().items():
        assert torch.equal(value, untouched.state_dict()[name]), name


def write_script(path):
    """The two files by which torch.jit.load knows its own archives."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"")
        archive.writestr("a/constants.pkl", b"")


@pytest.mark.parametrize(
    ("name", "write", "message"),
    [
        ("a.pth", lambda p: p.write_bytes(b"not a checkpoint"), "no file that torch.save wrote"),
        ("a.pth", lambda p: p.write_bytes(b"\x80\x02cos\nsystem\n."), "no file that torch.save"),
        ("a.pth", lambda p: p.write_bytes(b"PK\x03\x04 and no more"), "not whole"),
        ("a.pth", lambda p: write_script(p), "TorchScript program"),
        ("a.safetensors", lambda p: p.write_bytes(b"\x10"), "cannot be read"),
        ("a.pth", lambda p: p.write_bytes(b""), "cannot be read"),
        ("a.pth", lambda p: None, "are not there"),
        ("a.pth", lambda p: torch.save(torch.zeros(3), p), "no dictionary|no weights"),
        ("a.pth", lambda p: torch.save({"epoch": 3}, p), "no weights"),
        ("a.pth", lambda p: torch.save({}, p), "no weights"),
    ],
)
def test_what_is_no_weights_file_is_a_sentence(name, write, message, tmp_path):
    write(tmp_path / name)
    with pytest.raises(SetupError, match=message) as refused:
        read_weights(tmp_path / name)
    assert "\n" not in str(refused.value)
    assert "weights_only" not in str(refused.value)


def test_code_in_a_pickle_is_not_run(tmp_path):
    """Any object but plain values and tensors; a timedelta stands for worse."""
    torch.save({"state_dict": {}, "when": datetime.timedelta(1)}, tmp_path / "w.pth")
    with pytest.raises(SetupError, match="cannot be read"):
        read_weights(tmp_path / "w.pth")
