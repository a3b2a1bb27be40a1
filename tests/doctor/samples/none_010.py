"""A step of 80 instead of 50 ms with twice the images: 1.25x; or of 120, which is slower."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import baseline, record, request  # isort: skip

SPEC = request()


def firing() -> Case:
    return Case(record=record(SPEC, step_ms=80.0), baseline=baseline(SPEC))


def silent() -> Case:
    return Case(record=record(SPEC, step_ms=120.0), baseline=baseline(SPEC))
