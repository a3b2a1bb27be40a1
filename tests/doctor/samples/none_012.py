"""bf16 without a baseline, or with one in bf16."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import baseline, record, request  # isort: skip

SPEC = request(precision="bf16")


def firing() -> Case:
    return Case(record=record(SPEC))


def silent() -> Case:
    return Case(record=record(SPEC), baseline=baseline(SPEC))
