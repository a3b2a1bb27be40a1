"""Hosts talk over sockets, as libibverbs is missing; or over InfiniBand."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import log  # isort: skip


def firing() -> Case:
    return Case(
        nccl=log("NET", "Socket", hosts=2, missing_infiniband="Failed to open libibverbs.so[.1]")
    )


def silent() -> Case:
    return Case(nccl=log("NET", "IB", hosts=2))
