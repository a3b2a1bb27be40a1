"""20 of 50 ms waiting for images, or 2."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import record  # isort: skip


def firing() -> Case:
    return Case(record=record(data_ms=20.0))


def silent() -> Case:
    return Case(record=record(data_ms=2.0))
