"""nn.DataParallel as far as a machine without GPUs can show it: the wrapper and its reading."""

from __future__ import annotations

import msgspec
import pytest
import torch
from torch import nn

from ringside.errors import SetupError
from ringside.spec import Observed, RunSpec
from training.data_parallel import InAutocast, devices_of, spread
from training.observation import check, num_devices_of, strategy_of

CPU = torch.device("cpu")


@pytest.fixture
def spec(make_spec) -> RunSpec:
    return make_spec(
        "single", training={"parallelism": "data_parallel"}, device="cuda", gpu_ids=(0, 1),
        micro_batch=64,
    )  # fmt: skip


@pytest.fixture
def observed(spec) -> Observed:
    """What a run of the spec should find."""
    return Observed(
        num_processes=1, num_devices=2, strategy="data_parallel", mixed_precision="no",
        backend=None, device="cuda", device_name="a GPU", num_parameters=1, channels_last=True,
    )  # fmt: skip


@pytest.fixture
def without_gpus(monkeypatch) -> None:
    """nn.DataParallel of a model on the CPU is then the model itself, on every machine."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def test_two_gpus_of_one_process_share_a_batch(spec):
    assert (spec.strategy, spec.num_processes, spec.num_devices) == ("data_parallel", 1, 2)
    assert (spec.global_batch, spec.loader_batch, spec.micro_batch) == (64, 64, 32)


def test_it_is_read_back_from_the_wrapper(spec, observed):
    model = spread(nn.Linear(2, 2), 2, CPU, None)
    assert strategy_of(model, None) == "data_parallel"
    check(spec, observed)


@pytest.mark.parametrize("devices", [0, 1, 3])
def test_other_gpus_than_asked_for_are_an_error(spec, observed, devices):
    """Where torch sees no GPU the wrapper is the plain model, and would train as one."""
    if devices == 0:
        devices = num_devices_of(spread(nn.Linear(2, 2), 2, CPU, None), 1)
        assert devices == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
    if devices == 2:
        pytest.skip("this machine has the two GPUs")
    with pytest.raises(SetupError, match=f"num_devices should be 2 and is {devices}"):
        check(spec, msgspec.structs.replace(observed, num_devices=devices))


@pytest.mark.parametrize(
    ("dtype", "expected"), [(None, torch.float32), (torch.bfloat16, torch.bfloat16)]
)
def test_the_precision_travels_with_the_model(dtype, expected):
    """Not with the thread that calls it: autocast of the caller's own thread is off here."""
    logits = InAutocast(nn.Linear(4, 2), CPU, dtype)(torch.randn(3, 4))
    assert logits.dtype == expected


def test_it_trains_the_plain_model_under_its_own_names(without_gpus):
    """What is saved are the weights of the model that was given, not of a copy."""
    plain = nn.Linear(4, 1)
    model = spread(plain, 2, CPU, None)
    model(torch.ones(8, 4)).sum().backward()
    assert torch.equal(plain.weight.grad, torch.full((1, 4), 8.0))
    assert set(plain.state_dict()) == {"weight", "bias"}
    assert devices_of(model) == len(model.device_ids)
