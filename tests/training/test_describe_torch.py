"""What torch says of a machine, also where CUDA does not start or a copy fails."""

from __future__ import annotations

import pytest
import torch

from training import describe_torch

MIB = 2**20


@pytest.fixture
def two_devices(monkeypatch):
    """A torch that counts two GPUs, of which each can read the other's memory."""
    monkeypatch.setattr(torch.version, "cuda", "12.9")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda a, b: a < b)
    monkeypatch.setattr(torch._C, "_cuda_getArchFlags", lambda: "sm_80 sm_90", raising=False)
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 28, 9))


def test_two_gpus(two_devices):
    found = describe_torch.describe(load=False)
    assert (found.num_devices, found.peers) == (2, ((0, 1),))
    assert (found.arch_list, found.cuda, found.nccl) == (("sm_80", "sm_90"), "12.9", "2.28.9")
    assert (found.copy_bytes_per_s, found.problems) == ((), ())


def test_a_driver_that_is_too_old_costs_a_sentence(two_devices, monkeypatch):
    def refuse() -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old (found 11040).\nUpdate it")

    monkeypatch.setattr(torch.cuda, "init", refuse)
    found = describe_torch.describe(load=True)
    assert (found.num_devices, found.peers, found.copy_bytes_per_s) == (0, (), ())
    assert found.problems == (
        "torch cannot use CUDA here: The NVIDIA driver on your system is too old (found 11040).",
    )


def test_a_full_gpu_costs_a_sentence(two_devices, monkeypatch):
    """The second has no room; the first is copied to (here from host to host)."""
    real = torch.empty

    def empty(size, *, dtype, device=None, pin_memory=False):
        if device == "cuda:1":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 256.00 MiB.")
        return real(size, dtype=dtype)

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(describe_torch, "COPY_BYTES", MIB)
    monkeypatch.setattr(describe_torch, "COPY_S", 0.05)
    found = describe_torch.describe(load=True)
    first, second = found.copy_bytes_per_s
    assert first > 50 * MIB
    assert second is None
    assert found.problems[0].startswith("No copy to GPU 1, so its PCIe link was read at rest: CUDA")


def test_a_torch_without_cuda(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.delattr(torch._C, "_cuda_getArchFlags", raising=False)
    found = describe_torch.describe(load=True)
    assert (found.cuda, found.arch_list, found.num_devices) == (None, (), 0)
    assert found.problems == ()
