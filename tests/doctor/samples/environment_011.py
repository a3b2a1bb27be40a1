"""FSDP was asked for and DDP came; or what was asked for."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import observed, record, request  # isort: skip

SPEC = request("fsdp")


def firing() -> Case:
    return Case(record=record(SPEC, seen=observed(SPEC, strategy="ddp")))


def silent() -> Case:
    return Case(record=record(SPEC))
