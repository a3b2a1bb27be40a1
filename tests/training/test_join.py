"""A plain launch: the same words as `ringside run`, and no silent contradiction."""

from __future__ import annotations

import os

import msgspec
import pytest

from ringside.errors import RingsideError, SetupError
from ringside.hardware import Hardware
from ringside.spec import Observed
from training.join import parse_arguments, plain_spec
from training.observation import check

TWO_CORES = Hardware(num_cores=2)


def spec_of(*words):
    return plain_spec(parse_arguments(list(words)), TWO_CORES)


def test_the_launchers_process_count_is_taken(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    spec = spec_of("--preset", "ddp", "--batch", "48", "--set", "learning_rate=0.5")
    assert (spec.num_processes, spec.micro_batch) == (2, 24)
    assert spec.training.learning_rate == 0.5
    assert spec.sources["training.learning_rate"] == "flag"


@pytest.mark.parametrize(
    ("preset", "variables", "message"),
    [
        ("ddp", {"ACCELERATE_MIXED_PRECISION": "bf16"}, r"mixed_precision no .* bf16"),
        ("ddp", {"ACCELERATE_USE_FSDP": "true"}, r"FSDP false .* true"),
        ("fsdp", {}, r"FSDP true .* false"),
    ],
)
def test_a_config_file_that_says_otherwise_is_named(preset, variables, message, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SetupError, match=message):
        spec_of("--preset", preset)


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """A team preset with variables, launched on two processes."""
    folder = tmp_path / "team"
    folder.mkdir()
    folder.joinpath("quick.yaml").write_text(
        "about: {title: Q, why: w, when: w}\n"
        "accelerate: {distributed_type: MULTI_GPU}\n"
        "environment: {GLOO_SOCKET_IFNAME: lo, NCCL_DEBUG: INFO}\n"
    )
    monkeypatch.setenv("RINGSIDE_LIBRARY", str(folder))
    monkeypatch.setenv("WORLD_SIZE", "2")
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_DEBUG"):
        monkeypatch.setenv(name, "to be forgotten after the test")
        del os.environ[name]


def test_the_presets_variables_reach_the_ranks(quick):
    spec_of("--preset", "quick")
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo"
    assert os.environ["NCCL_DEBUG"] == "INFO"


def test_a_variable_with_two_owners_is_refused(quick, monkeypatch):
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    with pytest.raises(SetupError, match=r"NCCL_DEBUG=INFO.*shell sets NCCL_DEBUG=WARN"):
        spec_of("--preset", "quick")


@pytest.mark.parametrize("words", [["--preset", "ddp", "--set", "oops"], ["--preset", "dpp"]])
def test_mistakes_are_sentences(words, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RingsideError, match=r"KEY=VALUE|Did you mean"):
        spec_of(*words)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_processes", 1),
        ("strategy", "single"),
        ("mixed_precision", "bf16"),
        ("device", "cuda"),
        ("comm_hook", "fp16"),
        ("compiled", True),
        ("channels_last", False),
        ("freeze", "backbone"),
        ("sync_batchnorm", True),
        ("ema_decay", 0.9),
        ("threads", 2),
    ],
)
def test_each_difference_between_requested_and_observed_is_refused(field, value, make_spec):
    spec = make_spec("ddp")
    good = Observed(
        num_processes=2, num_devices=2, strategy="ddp", mixed_precision="no", backend="gloo",
        device="cpu", device_name="x", num_parameters=1, channels_last=True, threads=1,
    )  # fmt: skip
    check(spec, good)
    with pytest.raises(SetupError, match="not the one asked for"):
        check(spec, msgspec.structs.replace(good, **{field: value}))
