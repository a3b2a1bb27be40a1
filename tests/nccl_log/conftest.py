"""Logs made by hand, in the forms of NCCL 2.4 to 2.30."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ringside.nccl_log import NcclLog, read_text


def said(*texts: str, host: str = "node1", pid: int = 100, device: int = 0) -> str:
    """INFO lines of one process."""
    return "".join(f"{host}:{pid}:{pid} [{device}] NCCL INFO {text}\n" for text in texts)


def started(rank: int, num_ranks: int, *, host: str = "node1", bus: str = "1000") -> str:
    """A rank completes its communicator, in the form of 2.18."""
    return said(
        f"comm 0x7f{rank:04x} rank {rank} nranks {num_ranks} cudaDev {rank} nvmlDev {rank} "
        f"busId {bus} commId 0xabc - Init COMPLETE",
        host=host,
        pid=100 + rank,
        device=rank,
    )


@pytest.fixture
def read() -> Callable[..., NcclLog]:
    """Texts of a console, one after the other, as one log."""

    def read_all(*texts: str) -> NcclLog:
        return read_text("".join(texts))

    return read_all
