"""What is set for a device before anything runs on it."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

from training.accelerator import prepare_device

QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"


@pytest.fixture
def queues(monkeypatch):
    """How many hardware queues CUDA is told of when it is asked for the first time."""
    monkeypatch.delenv(QUEUES, raising=False)
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", torch.backends.cudnn.benchmark)
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda precision: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)

    def prepared(device):
        seen = []
        monkeypatch.setattr(
            torch.cuda, "is_available", lambda: bool(seen.append(os.environ.get(QUEUES))) or True
        )
        training = SimpleNamespace(cudnn_benchmark=False)
        prepare_device(SimpleNamespace(device=device, training=training, threads_per_device=1))
        return seen

    yield prepared
    os.environ.pop(QUEUES, None)


def test_all_hardware_queues_are_asked_for_before_cuda_starts(queues):
    assert queues("cuda") == ["32"]


def test_queues_that_a_person_set_are_kept(queues, monkeypatch):
    monkeypatch.setenv(QUEUES, "1")
    assert queues("cuda") == ["1"]


def test_a_cpu_needs_none(queues):
    assert queues("cpu") == []
    assert QUEUES not in os.environ
