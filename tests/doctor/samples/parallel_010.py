"""nn.DataParallel on two GPUs, or DDP."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import record, request  # isort: skip


def firing() -> Case:
    return Case(record=record(request("data_parallel")))


def silent() -> Case:
    return Case(record=record(request("ddp")))
