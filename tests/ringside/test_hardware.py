"""What the machine has: right without a GPU, behind a CUDA mask, and in a container."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from ringside.errors import RingsideError
from ringside.hardware import Gpu, Hardware, read_hardware


class NVMLError(Exception):
    pass


class FakeNvml(SimpleNamespace):
    """As much of nvidia-ml-py as Ringside uses, on a machine with three GPUs."""

    NVMLError = NVMLError
    UUIDS = ("GPU-aaaa1111-0", "GPU-bbbb2222-1", "GPU-cccc3333-2")

    def nvmlInit(self) -> None:  # noqa: N802
        if getattr(self, "broken", False):
            raise NVMLError("Driver/library version mismatch")

    def nvmlShutdown(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.UUIDS)

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.1"

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=1000 + handle, used=10 * handle)

    def nvmlDeviceGetName(self, handle: int) -> str:  # noqa: N802
        return "NVIDIA H200"

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return self.UUIDS[handle]

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> list[int]:  # noqa: N802
        if handle == 2:
            raise NVMLError("Not Supported")
        return [9, handle]


@pytest.fixture
def three_gpus(monkeypatch):
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    return nvml


def test_compute_capabilities_are_told_where_the_driver_knows(three_gpus):
    found = [gpu.compute_capability for gpu in read_hardware().gpus]
    assert found == [(9, 0), (9, 1), None]


def test_without_the_nvidia_library_there_are_no_gpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    machine = read_hardware()
    assert (machine.gpus, machine.driver, machine.device) == ((), None, "cpu")
    assert machine.num_cores >= 1
    assert machine.memory_bytes > 2**20
    assert machine.versions["accelerate"]


def test_a_driver_that_does_not_answer_means_no_gpus(three_gpus):
    three_gpus.broken = True
    assert read_hardware().device == "cpu"


def test_gpus_are_read(three_gpus):
    machine = read_hardware()
    assert machine.device == "cuda"
    assert machine.num_devices() == 3
    assert machine.driver == "580.1"
    assert machine.gpus[2] == Gpu(
        index=2, name="NVIDIA H200", uuid="GPU-cccc3333-2",
        memory_total_bytes=1002, memory_used_bytes=20,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mask", "indices"),
    [
        ("0", [0]),
        ("2,0", [2, 0]),
        (" 1 , 2 ", [1, 2]),
        ("GPU-bbbb2222-1", [1]),
        ("GPU-cccc,GPU-aaaa", [2, 0]),
        ("1,GPU-aaaa1111-0", [1, 0]),
        ("0,7,1", [0]),
        ("7", []),
        ("-1", []),
        ("0,-1,1", [0]),
        ("", []),
        (",0", []),
        ("NoDevFiles", []),
    ],
)
def test_the_mask_follows_the_rules_of_cuda(three_gpus, monkeypatch, mask, indices):
    """The listed order counts, and nothing after the first unknown entry exists."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", mask)
    machine = read_hardware()
    assert [gpu.index for gpu in machine.gpus] == indices
    assert machine.visible_devices == mask
    assert machine.device == ("cuda" if indices else "cpu")


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("200000 100000", 2),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("max 100000", 8),
        ("9900000 100000", 8),
        ("nonsense", 8),
        (None, 8),
    ],
)
def test_a_container_has_as_many_cores_as_its_quota(tmp_path, monkeypatch, text, cores):
    """Two processes on half a core measure nothing."""
    monkeypatch.setattr("ringside.cores.CPU_MAX", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    if text is not None:
        (tmp_path / "cpu.max").write_text(f"{text}\n")
    assert read_hardware().num_cores == cores


def test_on_a_cpu_a_device_is_a_process_with_its_threads():
    assert Hardware(num_cores=32).num_devices() == 32
    assert Hardware(num_cores=32).num_devices(threads_per_device=5) == 6
    assert Hardware(num_cores=2).num_devices(threads_per_device=4) == 1


def test_windows_is_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(RingsideError, match="on Windows use WSL"):
        read_hardware()
