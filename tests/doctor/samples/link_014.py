"""Sockets between two GPUs of one host, or between hosts."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import log  # isort: skip


def firing() -> Case:
    return Case(nccl=log("NET", "Socket", environment={"NCCL_SHM_DISABLE": "1"}))


def silent() -> Case:
    return Case(nccl=log("NET", "Socket", hosts=2))
