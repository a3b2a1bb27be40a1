"""Options of the model and of precision: refused before anything starts, in one sentence."""

from __future__ import annotations

import re
import zipfile

import pytest
import torch
from safetensors.torch import save_file

from ringside.errors import RingsideError, SpecError
from ringside.hardware import Gpu, Hardware
from ringside.request import RunRequest, continue_run, resolve
from ringside.sentences import plan_notes
from ringside.speedup import baseline_of


def gpus(*capabilities: tuple[int, int] | None) -> Hardware:
    cards = [
        Gpu(
            index=i, name=f"card {i}", uuid=f"GPU-{i}", memory_total_bytes=2**34,
            memory_used_bytes=0, compute_capability=capability,
        )
        for i, capability in enumerate(capabilities)
    ]  # fmt: skip
    return Hardware(gpus=tuple(cards), num_cores=8)


CPU = Hardware(num_cores=4)


def spec_of(preset, hardware=CPU, **fields):
    return resolve(RunRequest(preset=preset, data="products:ci", batch=16, **fields), hardware)


def refusal(preset, hardware=CPU, **fields):
    with pytest.raises(RingsideError) as refused:
        spec_of(preset, hardware, **fields)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("capability", [(7, 0), (7, 5), (6, 1)])
@pytest.mark.parametrize("preset", ["ddp_bf16", "fsdp_bf16"])
def test_bf16_is_refused_where_it_is_emulated(preset, capability):
    """torch says that a V100 supports it, and then runs it many times slower."""
    sentence = refusal(preset, gpus(capability, capability))
    assert "GPU 0 (card 0) has {}.{}".format(*capability) in sentence
    assert "mixed_precision=fp16" in sentence


def test_only_the_gpus_of_the_run_count():
    mixed = gpus((8, 0), (7, 0))
    assert spec_of("ddp_bf16", mixed, processes=1).gpu_ids == (0,)
    assert "GPU 1 (card 1) has 7.0" in refusal("ddp_bf16", mixed)


@pytest.mark.parametrize("capability", [(8, 0), (9, 0), (10, 0), None])
def test_bf16_is_taken_elsewhere(capability):
    """And where the driver cannot tell, nothing is claimed."""
    assert spec_of("ddp_bf16", gpus(capability)).accelerate.mixed_precision == "bf16"


def test_fp16_and_fp32_run_on_every_gpu():
    for preset in ("ddp_fp16", "ddp"):
        assert spec_of(preset, gpus((7, 0), (7, 0))).num_processes == 2


def test_a_resumed_run_meets_the_same_gpus(make_spec, write_run, leave_checkpoint):
    spec = make_spec("ddp", precision="bf16", device="cuda", gpu_ids=(0, 1))
    run = write_run(spec, "20260101-000000-old-run")
    folder = leave_checkpoint(run, epoch=2)
    assert continue_run(run, gpus((8, 0), (8, 0))).resume_from == str(folder)
    with pytest.raises(SpecError, match=r"bf16 needs GPUs of compute capability 8\.0"):
        continue_run(run, gpus((7, 0), (7, 0)))


@pytest.mark.parametrize(
    ("preset", "setting", "words"),
    [
        ("fsdp", "ema_decay=0.99", "ema_decay needs all weights in one place, .* fsdp"),
        ("local_sgd", "ema_decay=0.99", "ema_decay needs .*, .* local_sgd"),
        ("single", "sync_batchnorm=true", "sync_batchnorm needs DDP, .* single"),
        ("fsdp", "sync_batchnorm=true", "sync_batchnorm needs DDP, .* fsdp"),
        ("ddp", "sync_batchnorm=true", "sync_batchnorm needs several GPUs.*on a CPU"),
    ],
)
def test_what_a_strategy_cannot_do_is_a_sentence(preset, setting, words):
    key, value = setting.split("=")
    sentence = refusal(preset, overrides={key: value})
    assert re.search(words, sentence)
    assert sentence.endswith("leave the setting out.")


def test_synchronised_batchnorm_on_gpus_has_a_plain_baseline():
    two = gpus((9, 0), (9, 0))
    spec = spec_of("ddp", two, overrides={"sync_batchnorm": "true"})
    assert spec.training.sync_batchnorm
    assert not baseline_of(spec).training.sync_batchnorm
    alone = refusal("ddp", two, processes=1, overrides={"sync_batchnorm": "true"})
    assert "on one GPU" in alone


def write_weights(path, **options):
    """A whole file of weights, as torch or safetensors writes it."""
    weights = {"weight": torch.zeros(100)}
    if path.suffix == ".safetensors":
        save_file(weights, path)
    else:
        torch.save(weights, path, **options)


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth", "w.pt"])
def test_a_weights_file_becomes_an_absolute_path(name, tmp_path, monkeypatch):
    write_weights(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    spec = spec_of("single", weights=name)
    assert spec.weights == str(tmp_path / name)
    assert spec.sources["weights"] == "flag"
    assert spec_of("single").weights is None


def test_a_run_gives_its_best_checkpoint(make_spec, write_run):
    run = write_run(make_spec("single"), "20260101-000000-old-run")
    folder = run.checkpoints / "best"
    folder.mkdir(parents=True)
    write_weights(folder / "model.safetensors")
    for text in ("old-run", run.id, str(run.path), str(folder)):
        assert spec_of("single", weights=text).weights == str(folder)


def test_weights_that_are_not_there_are_refused(tmp_path):
    assert "no file" in refusal("single", weights=str(tmp_path / "gone.pth"))
    assert "neither a run nor a folder" in refusal("single", weights=str(tmp_path))
    (tmp_path / "notes.txt").write_text("")
    assert "neither a .safetensors nor a .pth" in refusal(
        "single", weights=str(tmp_path / "notes.txt")
    )


@pytest.mark.parametrize(
    ("name", "spoil", "fault"),
    [
        ("w.pth", lambda whole: b"", "no file that torch.save wrote"),
        ("w.pth", lambda whole: b"<html>404</html>", "no file that torch.save wrote"),
        ("w.pth", lambda whole: whole[:-40], "not whole"),
        ("w.safetensors", lambda whole: b"", "no safetensors file, or not a whole one"),
        ("w.safetensors", lambda whole: whole[:-8], "no safetensors file, or not a whole one"),
        ("w.safetensors", lambda whole: b"x" * 100, "no safetensors file, or not a whole one"),
    ],
)
def test_a_file_that_holds_no_weights_is_refused_before_the_launch(name, spoil, fault, tmp_path):
    path = tmp_path / name
    write_weights(path)
    path.write_bytes(spoil(path.read_bytes()))
    assert refusal("single", weights=str(path)).endswith(f"cannot be used: it is {fault}.")


def test_another_zip_archive_is_no_file_of_weights(tmp_path):
    with zipfile.ZipFile(tmp_path / "w.pth", "w") as archive:
        archive.writestr("notes.txt", "no weights")
    assert "torch.save did not write" in refusal("single", weights=str(tmp_path / "w.pth"))


def test_a_file_of_an_old_torch_is_taken(tmp_path):
    write_weights(tmp_path / "w.pth", _use_new_zipfile_serialization=False)
    assert spec_of("single", weights=str(tmp_path / "w.pth")).weights


def test_weights_of_another_model_are_refused(make_spec, write_run, leave_checkpoint):
    run = write_run(make_spec("single"), "20260101-000000-old-run")
    folder = leave_checkpoint(run).rename(run.checkpoints / "best")
    write_weights(folder / "model.safetensors")
    assert spec_of("single", weights="old-run", model="resnet50.a1_in1k").weights == str(folder)
    assert (
        "The weights old-run are of the model resnet50 and the run would train resnet18"
    ) in refusal("single", weights="old-run", model="resnet18")


def test_weights_have_one_origin(tmp_path):
    write_weights(tmp_path / "w.pth")
    sentence = refusal("single", weights=str(tmp_path / "w.pth"), overrides={"pretrained": "true"})
    assert "both say where weights come from" in sentence


def test_a_random_backbone_that_is_frozen_is_pointed_out(tmp_path):
    write_weights(tmp_path / "w.pth")
    frozen = {"freeze": "backbone"}
    assert "at random" in plan_notes(spec_of("single", overrides=frozen))[-1]
    for better in ({"weights": str(tmp_path / "w.pth")}, {"overrides": {"pretrained": "true"}}):
        fields = {**better, "overrides": frozen | better.get("overrides", {})}
        assert "at random" not in " ".join(plan_notes(spec_of("single", **fields)))
