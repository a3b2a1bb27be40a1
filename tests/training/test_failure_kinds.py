"""Real failures, as torch, gloo and the system raise them, come to their kind."""

from __future__ import annotations

import importlib
import socket
from datetime import timedelta

import pytest
import torch
from torch import distributed

from ringside.causes import kind_of
from ringside.data import open_data, parse_data
from ringside.errors import RingsideError
from training.failure import recognise


def kind_of_error(error: BaseException) -> str:
    return kind_of(recognise(error)[0])


def test_memory_that_the_machine_does_not_have():
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert kind_of_error(caught.value) == "out_of_memory_host"


def test_memory_that_python_does_not_get():
    with pytest.raises(MemoryError) as caught:
        bytearray(2**60)
    assert kind_of_error(caught.value) == "out_of_memory_host"


def test_a_disk_that_is_full():
    with pytest.raises(OSError, match="space") as caught, open("/dev/full", "wb", 0) as stream:
        stream.write(b"x")
    assert kind_of_error(caught.value) == "disk_full"


def test_a_port_that_another_program_has():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(distributed.DistError) as caught:
            distributed.TCPStore("127.0.0.1", port, 1, is_master=True, timeout=timedelta(seconds=1))
    assert kind_of_error(caught.value) == "port"


def test_a_store_that_nobody_serves():
    with pytest.raises(distributed.DistError) as caught:
        distributed.TCPStore("127.0.0.1", 1, 2, is_master=False, timeout=timedelta(seconds=1))
    assert kind_of_error(caught.value) in ("hang", "connection")


def test_a_package_that_is_missing():
    with pytest.raises(ImportError) as caught:
        importlib.import_module("timm_of_another_world")
    assert kind_of_error(caught.value) == "import"


def test_a_folder_without_pictures(tmp_path):
    for split in ("train", "val"):
        (tmp_path / split).mkdir()
    with pytest.raises(RingsideError) as caught:
        open_data(parse_data(str(tmp_path)))
    assert kind_of_error(caught.value) == "data"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        # torch 2.11, CUDACachingAllocator.cpp
        (torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.81 "
            "GiB of which 12.51 GiB is free."), "out_of_memory"),
        (RuntimeError("DataLoader worker (pid 12) is killed by signal: Killed. "), "killed"),
        (RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:538] Connection closed by "
                      "peer [127.0.0.1]:34567"), "connection"),
        (RuntimeError("Expected more than 1 value per channel when training, got input size "
                      "torch.Size([1, 64, 1, 1])"), "config"),
        (KeyError("red"), "unknown"),
    ],
)  # fmt: skip
def test_what_cannot_be_raised_here_in_its_own_words(error, kind):
    assert kind_of_error(error) == kind
