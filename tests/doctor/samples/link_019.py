"""FSDP with 10 of 140 GiB in use, or with 126: DDP would need 0.2 more, and 126 is 90 %."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import machine, record, request  # isort: skip

SPEC = request("fsdp_bf16", precision="bf16")


def firing() -> Case:
    return Case(record=record(SPEC, memory_bytes=10 * 2**30), machine=machine())


def silent() -> Case:
    return Case(record=record(SPEC, memory_bytes=126 * 2**30), machine=machine())
