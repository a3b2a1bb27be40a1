"""Synchronised BatchNorm with 64 images a device, or with 4."""

from __future__ import annotations

from ringside.doctor import Case

from tests.doctor.making import record, request  # isort: skip

ON = {"sync_batchnorm": True}


def firing() -> Case:
    return Case(record=record(request(settings=ON)))


def silent() -> Case:
    return Case(record=record(request(batch=8, settings=ON)))
